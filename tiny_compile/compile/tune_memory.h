// Which schedule won when this kernel was last searched on this machine? Kept on disk.
#pragma once

#include <optional>
#include <string>

#include "tiny_compile/loops/program.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

// The kernel as a Program that can be called: its buffers, named b0, b1, ..., are inputs and outputs,
// so that equal kernels of any Program are one. Nothing where it has symbolic sizes, or writes a
// buffer that it reads or that nobody writes a part of.
std::optional<Program> kernel_alone(const Program& program, const Kernel& kernel);

// Names a kernel alone, whatever its schedule, on this machine: CPU or GPU, compiler, threads, and by
// the text of the policy's schedule what the code generators make of it today.
std::string tune_key(const Program& alone, Device device);

// Nothing where there is no entry, or what is there is damaged, of another kernel or not legal: that
// costs the time of a search and no more.
std::optional<Schedule> remembered_schedule(const std::string& directory,
                                            const std::string& key, const Program& alone);

// "" as directory: nothing is kept.
void remember_schedule(const std::string& directory, const std::string& key, Program alone,
                       const Schedule& schedule);

}  // namespace tiny_compile
