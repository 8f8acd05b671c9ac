// The memory of the device that the kernels run on, so that one program serves both targets:
//
//     device::Array<float> x(host);                  // a std::vector
//     kernel(nullptr, x.ptr(), ...);
//     device::synchronize();
//     std::vector<float> result = x.to_host();
//
// The header of the kernels says which target it is. On a GPU this calls libcuda, opened at run time: neither a CUDA header
// nor a CUDA library is needed to build the program. A program that uses the CUDA runtime or torch has its own way to
// allocate, and passes its addresses as `reinterpret_cast<CUdeviceptr>(pointer)`.

#pragma once

#include <string>
#include <vector>

#include "fmha.h"

#ifdef DEUTERON_TARGET_CUDA

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace device {

// How many calls are queued before one is waited for, when they are timed.
constexpr int calls_at_once = 20;

inline void* library() {
    static void* found = dlopen("libcuda.so.1", RTLD_NOW);
    return found;
}

// Calls a function of the driver. What fails ends the program: there is nothing else that it could do.
template <typename... Args>
void call(const char* function, Args... args) {
    const auto address = reinterpret_cast<CUresult (*)(Args...)>(dlsym(library(), function));
    const CUresult status = address ? address(args...) : CUDA_ERROR_UNKNOWN;
    if (status == CUDA_SUCCESS) return;
    std::fprintf(stderr, "%s: %s\n", function, deuteron_status_string(status));
    std::exit(1);
}

// Makes the first GPU the current one; returns its name, or nothing where there is none.
inline std::string open() {
    const auto init = reinterpret_cast<CUresult (*)(unsigned)>(library() ? dlsym(library(), "cuInit") : nullptr);
    if (!init || init(0) != CUDA_SUCCESS) return "";
    int gpu = 0;
    char name[256] = "";
    void* context = nullptr;
    call("cuDeviceGet", &gpu, 0);
    call("cuDeviceGetName", static_cast<char*>(name), int(sizeof name), gpu);
    call("cuDevicePrimaryCtxRetain", &context, gpu);
    call("cuCtxSetCurrent", context);
    return name;
}

inline void synchronize() { call("cuCtxSynchronize"); }

template <typename T>
class Array {
public:
    explicit Array(const std::vector<T>& host) : size_(host.size()) {
        call("cuMemAlloc_v2", &address_, size_ * sizeof(T));
        call("cuMemcpyHtoD_v2", address_, static_cast<const void*>(host.data()), size_ * sizeof(T));
    }
    ~Array() { call("cuMemFree_v2", address_); }
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;

    deuteron_ptr ptr() const { return address_; }

    std::vector<T> to_host() const {
        std::vector<T> host(size_);
        call("cuMemcpyDtoH_v2", static_cast<void*>(host.data()), address_, size_ * sizeof(T));
        return host;
    }

private:
    CUdeviceptr address_ = 0;
    std::size_t size_;
};

}  // namespace device

#else

namespace device {

constexpr int calls_at_once = 1;

inline std::string open() { return "CPU"; }

inline void synchronize() {}  // a call returns when the kernel has run

template <typename T>
class Array {
public:
    explicit Array(const std::vector<T>& host) : memory_(host) {}

    deuteron_ptr ptr() { return memory_.data(); }

    const std::vector<T>& to_host() const { return memory_; }

private:
    std::vector<T> memory_;
};

}  // namespace device

#endif
