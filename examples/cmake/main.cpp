// An inference loop of three kernels, beside the same in double precision:
//
//     for each layer:  h = rms_norm(x);  a = attention(h, h, h);  x = swiglu(a, h)
//
//     inference cpu         inference gpu

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "device.h"

namespace {

constexpr int rows = 100, heads = 4, head_size = 64, columns = heads * head_size, num_layers = 3;
constexpr float epsilon = 1e-5f, scale = 0.125f;
using Matrix = std::vector<double>;

std::vector<float> run(Device& device, const std::vector<float>& input, const std::vector<float>& weight) {
    namespace kernels = layers::checked;  // throw deuteron::error, where layers:: returns a status
    const deuteron::stream stream = device.stream();
    float* x = device.copy(input);
    float* w = device.copy(weight);
    float* h = device.allocate(input.size());
    float* a = device.allocate(input.size());
    for (int layer = 0; layer < num_layers; layer++) {
        kernels::rms_norm(stream, x, w, h, columns, epsilon, rows);
        kernels::attention(stream, h, h, h, a, scale, rows, heads);
        kernels::swiglu(stream, a, h, x, rows * columns);
    }
    return device.read(x, input.size());
}

Matrix normed(const Matrix& x, const std::vector<float>& weight) {
    Matrix h(x.size());
    for (int row = 0; row < rows; row++) {
        double sum = 0;
        for (int i = 0; i < columns; i++) sum += x[row * columns + i] * x[row * columns + i];
        for (int i = 0; i < columns; i++)
            h[row * columns + i] = x[row * columns + i] * weight[i] / std::sqrt(sum / columns + epsilon);
    }
    return h;
}

Matrix attended(const Matrix& h) {
    Matrix a(h.size());
    for (int head = 0; head < heads; head++)
        for (int row = 0; row < rows; row++) {
            const int at = row * columns + head * head_size;
            double total = 0;
            for (int key = 0; key <= row; key++) {
                const int there = key * columns + head * head_size;
                double score = 0;
                for (int i = 0; i < head_size; i++) score += h[at + i] * h[there + i];
                const double part = std::exp(score * scale);
                total += part;
                for (int i = 0; i < head_size; i++) a[at + i] += part * h[there + i];
            }
            for (int i = 0; i < head_size; i++) a[at + i] /= total;
        }
    return a;
}

Matrix reference(const std::vector<float>& input, const std::vector<float>& weight) {
    Matrix x(input.begin(), input.end());
    for (int layer = 0; layer < num_layers; layer++) {
        const Matrix h = normed(x, weight), a = attended(h);
        for (std::size_t i = 0; i < x.size(); i++) x[i] = a[i] / (1 + std::exp(-a[i])) * h[i];
    }
    return x;
}

}  // namespace

int main(int argc, char** argv) {
    Device device(argc > 1 && !std::strcmp(argv[1], "gpu"));
    std::vector<float> input(rows * columns), weight(columns);
    for (std::size_t i = 0; i < input.size(); i++) input[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
    for (std::size_t i = 0; i < weight.size(); i++) weight[i] = 0.5f + static_cast<float>(i % 7) / 10;
    try {
        const std::vector<float> result = run(device, input, weight);
        const Matrix expected = reference(input, weight);
        double error = 0, largest = 0;
        for (std::size_t i = 0; i < result.size(); i++) {
            error = std::max(error, std::abs(result[i] - expected[i]));
            largest = std::max(largest, std::abs(expected[i]));
        }
        const bool is_right = error < 0.01 * largest;  // dots on a GPU round to tf32
        std::printf("%d layers: largest error %.2g of %.2g: %s\n", num_layers, error, largest, is_right ? "right" : "WRONG");
        return is_right ? 0 : 1;
    } catch (const deuteron::error& error) {
        std::printf("%s\n", error.what());
        return 1;
    }
}
