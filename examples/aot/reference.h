// Attention in float64, one row at a time, and conversions between fp32 and fp16 in plain C++.
//
//     Attention reference = attention_float64(problem, q, k, v);   // causal: row i sees the keys 0 to i
//     double error = relative_error(out, reference.out);           // max |a - b| / max |b|

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

using Half = std::uint16_t;

inline float to_float(Half half) {
    const float magnitude = (half & 0x7c00) != 0
        ? std::ldexp(1.0f + (half & 0x3ff) / 1024.0f, ((half >> 10) & 0x1f) - 15)
        : std::ldexp((half & 0x3ff) / 1024.0f, -14);
    if ((half & 0x7c00) == 0x7c00) return (half & 0x3ff) ? NAN : (half & 0x8000) ? -INFINITY : INFINITY;
    return (half & 0x8000) ? -magnitude : magnitude;
}

// The nearest fp16, ties to even. Only for finite numbers within the range of fp16.
inline Half to_half(float value) {
    const Half sign = std::signbit(value) ? 0x8000 : 0;
    const float magnitude = std::fabs(value);
    if (magnitude < 6.103515625e-05f) {  // subnormal: a multiple of 2^-24
        return sign | static_cast<Half>(std::nearbyint(std::ldexp(magnitude, 24)));
    }
    int exponent;
    const float mantissa = std::frexp(magnitude, &exponent);  // in [0.5, 1)
    const int bits = static_cast<int>(std::nearbyint(std::ldexp(mantissa, 11)));  // 1024 to 2048
    return sign | static_cast<Half>(((exponent + 14) << 10) + (bits - 1024));
}

// Arrays are (batch, seqlen, nheads, headdim), contiguous; log-sum-exp is (batch, nheads, seqlen).
struct Problem {
    int batch, nheads, seqlen_q, seqlen_k, headdim;

    std::size_t q_size() const { return std::size_t(batch) * seqlen_q * nheads * headdim; }
    std::size_t k_size() const { return std::size_t(batch) * seqlen_k * nheads * headdim; }
    double scale() const { return 1.0 / std::sqrt(double(headdim)); }

    // Two products of 2 * headdim operations for every key that a row sees.
    double flops() const {
        double keys = 0;
        for (int row = 0; row < seqlen_q; ++row) keys += std::min(row + 1, seqlen_k);
        return 4.0 * batch * nheads * headdim * keys;
    }
};

struct Attention {
    std::vector<double> out, lse;
};

inline Attention attention_float64(const Problem& p, const std::vector<Half>& q, const std::vector<Half>& k,
                                   const std::vector<Half>& v) {
    std::vector<double> qd(q.size()), kd(k.size()), vd(v.size());
    std::transform(q.begin(), q.end(), qd.begin(), to_float);
    std::transform(k.begin(), k.end(), kd.begin(), to_float);
    std::transform(v.begin(), v.end(), vd.begin(), to_float);

    Attention result{std::vector<double>(p.q_size(), 0.0), std::vector<double>()};
    std::vector<double> scores(p.seqlen_k);
    for (int b = 0; b < p.batch; ++b) {
        for (int h = 0; h < p.nheads; ++h) {
            for (int row = 0; row < p.seqlen_q; ++row) {
                const int keys = std::min(row + 1, p.seqlen_k);
                const double* query = &qd[((std::size_t(b) * p.seqlen_q + row) * p.nheads + h) * p.headdim];
                double* out = &result.out[((std::size_t(b) * p.seqlen_q + row) * p.nheads + h) * p.headdim];
                double greatest = -INFINITY, sum = 0;
                for (int key = 0; key < keys; ++key) {
                    const double* k_row = &kd[((std::size_t(b) * p.seqlen_k + key) * p.nheads + h) * p.headdim];
                    scores[key] = 0;
                    for (int d = 0; d < p.headdim; ++d) scores[key] += query[d] * k_row[d];
                    scores[key] *= p.scale();
                    greatest = std::max(greatest, scores[key]);
                }
                for (int key = 0; key < keys; ++key) {
                    const double* v_row = &vd[((std::size_t(b) * p.seqlen_k + key) * p.nheads + h) * p.headdim];
                    const double weight = std::exp(scores[key] - greatest);
                    sum += weight;
                    for (int d = 0; d < p.headdim; ++d) out[d] += weight * v_row[d];
                }
                for (int d = 0; d < p.headdim; ++d) out[d] /= sum;
                result.lse.push_back(greatest + std::log(sum));
            }
        }
    }
    return result;
}

// Infinite where any value is not a number, so that what was never written cannot pass.
inline double relative_error(const std::vector<double>& got, const std::vector<double>& expected) {
    double error = 0, greatest = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (std::isnan(got[i])) return INFINITY;
        error = std::max(error, std::fabs(got[i] - expected[i]));
        greatest = std::max(greatest, std::fabs(expected[i]));
    }
    return error / greatest;
}
