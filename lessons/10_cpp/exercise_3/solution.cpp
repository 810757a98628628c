#include "exercise.h"

namespace exercise {
namespace {

// The arguments, and which buffers they are.
std::string arguments(const Program& program, const Kernel& kernel, KernelEntry& entry) {
  const std::vector<bool> read = buffers_read(program, kernel),
                          written = buffers_written(program, kernel);
  std::vector<std::string> list;
  for (size_t b = 0; b < program.buffers.size(); b++) {
    if (!read[b] && !written[b]) continue;
    entry.buffers.push_back(static_cast<int>(b));
    list.push_back(str("__global ", written[b] ? "" : "const ", "float* ",
                       pointer_name(program.buffers[b])));
  }
  return join(list, ", ");
}

// const int i1 = point % 257; const int i0 = point / 257;
std::string unpacked(const Kernel& kernel) {
  std::string text;
  int64_t below = 1;
  for (size_t a = kernel.axes.size(); a-- > 0;) {
    const int64_t extent = kernel.axes[a].extent.constant();
    text +=
        str("  const int ", kernel.axes[a].name, " = point / ", below, " % ", extent, ";\n");
    below *= extent;
  }
  return text;
}

KernelEntry write_kernel(const Program& program, const Kernel& kernel, std::string& text) {
  KernelEntry entry;
  const int64_t points = row_count(kernel).constant();
  entry.function = "k_" + kernel.name;
  entry.block = kGroup;
  entry.grid = (points + kGroup - 1) / kGroup;
  text +=
      str("__kernel void ", entry.function, "(", arguments(program, kernel, entry), ") {\n");
  text += "  const int point = get_global_id(0);\n";
  text += str("  if (point >= ", points, ") return;\n");
  text += unpacked(kernel);
  Calls calls;
  const ScalarWriter scalars(program, kernel, calls);
  for (int id = 0; id < static_cast<int>(kernel.scalars.size()); id++) {
    if (!scalars.is_trivial(id)) text += "  " + scalars.definition(id) + "\n";
  }
  for (const Step& step : kernel.steps)
    text += str("  ", pointer_name(program.buffers[static_cast<size_t>(step.buffer)]), "[",
                scalars.index(step.index), "] = ", scalars.name(step.value), ";\n");
  text += "}\n";
  return entry;
}

}  // namespace

Source emit_opencl(const Program& program) {
  Source source;
  for (const Kernel& kernel : program.kernels)
    source.kernels.push_back(write_kernel(program, kernel, source.text));
  return source;
}

}  // namespace exercise
