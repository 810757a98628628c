// When are two kernels the same? When they are equal values after all that does not change what
// they do is gone: the kernel's name, its place in the user's source, and which buffers of the
// Program it names. The layers of a network are one kernel that way:
//
//   kernel exp_7 rows(i0: 64) { store t9[i0] = exp(load t8[i0]) }     # mlp.cpp:12
//   kernel exp_3 rows(i0: 64) { store t4[i0] = exp(load x[i0]) }      # mlp.cpp:9
// =>
//   kernel  rows(i0: 64) { store [1][i0] = exp(load [0][i0]) }        twice, with {t8, t9}, {x, t4}
//
// A back end that writes a kernel from its LoneKernel cannot let the text depend on more.
#include "tiny_compile/loops/kernel_key.h"

#include <algorithm>
#include <unordered_map>

#include "tiny_compile/loops/in_place.h"

namespace tiny_compile {
namespace {

// Renumbers buffers by first use: loads in the order of the scalars, then what steps write.
class Numbering {
 public:
  int of(int buffer) {
    const auto [known, is_new] = numbers_.insert({buffer, static_cast<int>(order.size())});
    if (is_new) order.push_back(buffer);
    return known->second;
  }
  std::vector<int> order;

 private:
  std::unordered_map<int, int> numbers_;
};

Buffer essence(const Buffer& buffer) {
  Buffer kept;
  kept.name = buffer.name;
  kept.role = buffer.role;
  kept.type = {buffer.type.dtype, {buffer.size}};
  kept.size = buffer.size;
  kept.align = buffer.align;
  return kept;
}

size_t mix(size_t seed, size_t value) {
  return (seed ^ value) * 0x9e3779b97f4a7c15ull + (seed >> 29);
}

size_t hash_of(const Program& program) {
  const Kernel& kernel = program.kernels[0];
  size_t h = mix(kernel.scalars.size(), kernel.steps.size());
  for (const Axis& axis : kernel.axes) h = mix(h, axis.extent.hash());
  for (const Scalar& s : kernel.scalars)
    h = mix(mix(mix(h, static_cast<size_t>(s.op)), s.value.bits), s.index.hash());
  for (const Step& step : kernel.steps)
    h = mix(mix(h, static_cast<size_t>(step.kind)), step.index.hash());
  for (const Buffer& buffer : program.buffers)
    h = mix(mix(h, static_cast<size_t>(buffer.type.dtype)), buffer.size.hash());
  return h;
}

bool divides_integers(const Kernel& kernel, const Scalar& scalar) {
  return scalar.kind == ScalarKind::Apply &&
         (scalar.op == Op::floor_divide || scalar.op == Op::remainder) &&
         !is_float(kernel.scalars[scalar.operands[0]].dtype);
}

bool has_chosen_places(const Kernel& kernel) {
  const auto placed = [](const Scalar& scalar) {
    return (scalar.kind == ScalarKind::Load || scalar.kind == ScalarKind::Index) &&
           !scalar.operands.empty();
  };
  const auto scatters = [](const Step& step) { return step.kind == StepKind::Scatter; };
  return std::any_of(kernel.scalars.begin(), kernel.scalars.end(), placed) ||
         std::any_of(kernel.steps.begin(), kernel.steps.end(), scatters);
}

}  // namespace

LoneKernel lone_kernel(const Program& program, const Kernel& kernel) {
  LoneKernel lone;
  lone.program.target = program.target;
  lone.program.machine = program.machine;
  lone.program.matmul = program.matmul;
  lone.program.kernels = {kernel};
  lone.program.launches = {{0}};
  Kernel& own = lone.program.kernels[0];
  Numbering numbering;  // what shares bytes is one buffer
  for (Scalar& scalar : own.scalars) {
    if (scalar.kind == ScalarKind::Load)
      scalar.buffer = numbering.of(storage_of(program, scalar.buffer));
  }
  for (Step& step : own.steps) {
    if (!makes_register(step)) step.buffer = numbering.of(storage_of(program, step.buffer));
  }
  lone.buffers = numbering.order;
  for (int buffer : lone.buffers)
    lone.program.buffers.push_back(essence(program.buffers[buffer]));
  return lone;
}

KernelKey key_of(const LoneKernel& lone) {
  KernelKey key{lone.program, 0};
  key.program.kernels[0].name.clear();
  key.program.kernels[0].where.clear();
  key.program.kernels[0].again = 0;
  for (Buffer& buffer : key.program.buffers) {
    buffer.name.clear();
    buffer.role = Role::Temporary;
  }
  key.hash = hash_of(key.program);
  return key;
}

bool can_fail(const Kernel& kernel) {
  return has_chosen_places(kernel) ||
         std::any_of(kernel.scalars.begin(), kernel.scalars.end(),
                     [&](const Scalar& scalar) { return divides_integers(kernel, scalar); });
}

std::string kernels_with_chosen_places(const Program& program) {
  std::vector<std::string> found;
  for (const Kernel& kernel : program.kernels) {
    if (!has_chosen_places(kernel)) continue;
    std::vector<std::string> lines;
    for (const Location& line : kernel.where) lines.push_back(line.str());
    found.push_back(
        str("kernel ", kernel.name, lines.empty() ? "" : " (" + join(lines, " ") + ")"));
  }
  return join(found, " or ");
}

}  // namespace tiny_compile
