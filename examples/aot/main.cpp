// Calls an attention kernel that was compiled ahead of time, and checks it: no Python and no compiler at run time.
//
//     make run                      (or `make demo` at the root of the repository)
//
// The header `fmha.h` comes from `deuteron link`. It declares, for all compiled variants together,
//
//     fmha_d64_fp16_default(stream, Q, K, V, Out, ...)            the first variant
//     fmha_d64_fp16(stream, Q, K, V, Out, ..., algo_id)           the variant of that number
//     fmha_d64_fp16_get_num_algos()
//
// Every call returns a status, DEUTERON_SUCCESS or what went wrong, which `deuteron_status_string` names. The header is the
// same for kernels compiled for the CPU and for GPUs, so this program is built with either; `device.h` is the difference.

#include <chrono>
#include <cstdio>
#include <random>

#include "device.h"
#include "fmha.h"
#include "reference.h"

namespace {

constexpr int rounding = 128;  // Lse and TMP have rows for the largest tile

struct Result {
    double out_error, out_max_error, lse_error, milliseconds;
};

// Uniform in [-1, 1), the same in every run.
std::vector<Half> random_halves(std::size_t size, unsigned seed) {
    std::mt19937 generator(seed);
    std::vector<Half> values(size);
    for (Half& value : values) value = to_half(std::ldexp(float(generator() >> 8), -23) - 1.0f);
    return values;
}

double max_error(const std::vector<double>& got, const std::vector<double>& expected) {
    double error = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) error = std::max(error, std::fabs(got[i] - expected[i]));
    return error;
}

template <typename Call>
double milliseconds_per_call(Call call) {
    using clock = std::chrono::steady_clock;
    double fastest = INFINITY, total = 0;
    while (total < 0.3) {
        const auto start = clock::now();
        for (int i = 0; i < device::calls_at_once; ++i) call();
        device::synchronize();
        const double seconds = std::chrono::duration<double>(clock::now() - start).count();
        fastest = std::min(fastest, seconds / device::calls_at_once);
        total += seconds;
    }
    return fastest * 1e3;
}

// Runs one variant and compares it with the reference.
deuteron_status run(const Problem& p, int block, int algo_id, const Attention& reference, const std::vector<Half>& q_host,
                    const std::vector<Half>& k_host, const std::vector<Half>& v_host, Result& result) {
    const int rounded = (p.seqlen_q + rounding - 1) / rounding * rounding;
    const std::vector<float> nan(std::size_t(p.batch) * p.nheads * rounded, NAN);
    device::Array<Half> q(q_host), k(k_host), v(v_host), out(std::vector<Half>(p.q_size(), 0x7e00));  // not a number
    device::Array<float> lse(nan), tmp(nan);
    const int row = p.nheads * p.headdim;  // from one row of a sequence to the next

    auto call = [&] {
        return fmha_d64_fp16(nullptr, q.ptr(), k.ptr(), v.ptr(), out.ptr(), lse.ptr(), tmp.ptr(), float(p.scale()),
                             p.seqlen_q * row, p.headdim, row,  // strides of Q: batch, head, row
                             p.seqlen_k * row, p.headdim, row,  // K
                             p.seqlen_k * row, p.headdim, row,  // V
                             p.seqlen_q * row, p.headdim, row,  // Out
                             p.nheads, p.seqlen_q, p.seqlen_k, rounded, p.headdim, p.batch,
                             p.seqlen_q % block == 0, p.seqlen_k % block == 0, p.headdim == 64,
                             algo_id);
    };
    const deuteron_status status = call();
    if (status != DEUTERON_SUCCESS) return status;

    device::synchronize();
    const std::vector<Half> out_host = out.to_host();
    const std::vector<float> lse_host = lse.to_host();
    std::vector<double> got_out(out_host.size()), got_lse;
    std::transform(out_host.begin(), out_host.end(), got_out.begin(), to_float);
    for (int sequence = 0; sequence < p.batch * p.nheads; ++sequence) {
        const float* first = &lse_host[std::size_t(sequence) * rounded];
        got_lse.insert(got_lse.end(), first, first + p.seqlen_q);
    }
    result.out_error = relative_error(got_out, reference.out);
    result.out_max_error = max_error(got_out, reference.out);
    result.lse_error = relative_error(got_lse, reference.lse);
    result.milliseconds = milliseconds_per_call(call);
    return status;
}

}  // namespace

int main() {
    const Problem problems[] = {
        {1, 4, 1024, 1024, 64},
        {2, 8, 512, 512, 64},
        {2, 3, 519, 777, 64},  // no multiples of the tiles
        {1, 5, 113, 113, 40},  // a head dimension below the tile's
        {1, 1, 1, 1, 64},
    };
    const int tiles[] = {128, 64};
    bool right = true;

    const std::string name = device::open();
    if (name.empty()) {
        std::printf("There is no NVIDIA GPU, so nothing was run.\n");
        return 2;
    }
    std::printf("Causal attention on the %s, fp16 with fp32 accumulators, against float64\n\n", name.c_str());
    std::printf("batch heads  queries    keys  dim   tile    max error  rel. error  lse error  time (ms)  GFLOP/s\n");
    for (const Problem& p : problems) {
        const std::vector<Half> q = random_halves(p.q_size(), 1), k = random_halves(p.k_size(), 2),
                                v = random_halves(p.k_size(), 3);
        const Attention reference = attention_float64(p, q, k, v);
        for (int algo_id = 0; algo_id < fmha_d64_fp16_get_num_algos(); ++algo_id) {
            Result result{};
            const deuteron_status status = run(p, tiles[algo_id], algo_id, reference, q, k, v, result);
            if (status != DEUTERON_SUCCESS) {
                std::printf("the kernel could not be launched: %s\n", deuteron_status_string(status));
                return 1;
            }
            std::printf("%5d %5d %8d %7d %4d   %4d   %10.1e  %10.1e %10.1e %10.3f %8.1f\n", p.batch, p.nheads,
                        p.seqlen_q, p.seqlen_k, p.headdim, tiles[algo_id], result.out_max_error, result.out_error,
                        result.lse_error, result.milliseconds, p.flops() / result.milliseconds * 1e-6);
            right = right && result.out_error < 1e-3 && result.lse_error < 1e-5;
        }
    }
    std::printf("\n%s\n", right ? "All results are right (relative error below 1e-3, of log-sum-exp below 1e-5)."
                                : "WRONG: a relative error is above 1e-3, or above 1e-5 for log-sum-exp.");
    return right ? 0 : 1;
}
