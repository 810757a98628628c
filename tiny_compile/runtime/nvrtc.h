// CUDA source text -> a CUBIN, through NVRTC, which is opened at run time.
#pragma once

#include <string>
#include <vector>

namespace tiny_compile {

// "", or why there is no NVRTC that can be used: none could be opened, or it is too old.
std::string why_no_nvrtc();
std::string why_not_nvrtc(int version);  // "" where kernels compile with it; 12.4: 1204

// "" where kernels can be compiled and run on a GPU, else which of driver, device and NVRTC is
// missing.
std::string why_no_gpu();

// Device code for exactly this architecture ("sm_90"); contraction is off, division and square
// root are IEEE's (the numeric contract). Needs no GPU. Throws tc::Error where NVRTC is missing
// or too old (saying what was tried) or refuses the source (its words, and the numbered lines they are
// about). Safe to call from several threads. `unit`: see Source::units; -1: all of them.
std::string compile_cuda(const std::string& source, const std::string& architecture,
                         int unit = -1);

// The options for an NVRTC of this version, but for the architecture: one that it
// does not know is left out.
std::vector<const char*> nvrtc_options(int version, bool many_kernels);

// What the result depends on beside source and architecture: NVRTC's file and the options.
// The file is found without opening it, which takes 6 to 10 ms, once the cache in `directory`
// knows where it is; nothing is remembered where that is "". Throws as compile_cuda does.
std::string nvrtc_identity(const std::string& directory);

}  // namespace tiny_compile
