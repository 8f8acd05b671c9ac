// Memory of the processor or of a GPU, which is reached through libcuda, opened at run time: no CUDA header or library is
// needed. A program that uses CUDA's runtime has cudaMalloc, and passes its cudaStream_t in the place of `stream`.

#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "layers.hpp"

class Device {
public:
    // The processor, or the first GPU; a GPU that is not there ends the program with 2.
    explicit Device(bool is_gpu) : is_gpu_(is_gpu) {
        if (!is_gpu) return;
        driver_ = dlopen("libcuda.so.1", RTLD_NOW);
        const auto init = reinterpret_cast<int (*)(unsigned)>(driver_ ? dlsym(driver_, "cuInit") : nullptr);
        if (!init || init(0) != 0) {
            std::puts("there is no GPU");
            std::exit(2);
        }
        int gpu = 0;
        void* context = nullptr;
        call("cuDeviceGet", &gpu, 0);
        call("cuDevicePrimaryCtxRetain", &context, gpu);
        call("cuCtxSetCurrent", context);
    }

    deuteron::stream stream() const { return is_gpu_ ? deuteron::stream(nullptr) : deuteron::stream(deuteron::cpu); }

    float* allocate(std::size_t count) {
        if (!is_gpu_) return static_cast<float*>(std::aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64));
        float* memory = nullptr;
        call("cuMemAlloc_v2", &memory, count * sizeof(float));
        return memory;
    }

    float* copy(const std::vector<float>& host) {
        float* memory = allocate(host.size());
        if (is_gpu_)
            call("cuMemcpyHtoD_v2", memory, static_cast<const void*>(host.data()), host.size() * sizeof(float));
        else
            std::copy(host.begin(), host.end(), memory);
        return memory;
    }

    std::vector<float> read(const float* memory, std::size_t count) {
        std::vector<float> host(count);
        if (is_gpu_)
            call("cuMemcpyDtoH_v2", static_cast<void*>(host.data()), memory, count * sizeof(float));  // waits
        else
            std::copy(memory, memory + count, host.begin());
        return host;
    }

private:
    template <typename... Args>
    void call(const char* function, Args... args) {
        const auto address = reinterpret_cast<int (*)(Args...)>(dlsym(driver_, function));
        const int status = address ? address(args...) : 500;
        if (status == 0) return;
        std::fprintf(stderr, "%s: %s\n", function, deuteron_status_string(status));
        std::exit(1);
    }

    bool is_gpu_;
    void* driver_ = nullptr;
};
