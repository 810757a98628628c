// How does a kernel of CUDA begin?
#include "tiny_compile/codegen/cuda_text.h"

#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/loops/in_place.h"

namespace tiny_compile {
namespace {

// Every number that the text computes with fits an int.
bool fits_int(const Program& program, const Kernel& kernel) {
  auto fits = [](const Expr& e) { return largest_part(e) < kMostInt; };
  bool all = fits(row_count(kernel));
  for (const Scalar& scalar : kernel.scalars) {
    all = all && fits(scalar.index);
    if (scalar.kind == ScalarKind::Load) all = all && fits(program.buffers[scalar.buffer].size);
  }
  for (const Step& step : kernel.steps) {
    all = all && fits(step.index) && fits(inner_count(kernel, step));
    if (!makes_register(step)) all = all && fits(program.buffers[step.buffer].size);
  }
  return all;
}

}  // namespace

CudaText::CudaText(const Program& p, const Kernel& k, Starts starts)
    : KernelText(p, k, true), starts_(starts) {
  if (fits_int(p, k)) integer = "int";
}

KernelEntry CudaText::begin(const std::string& function, const Expr& grid, int block,
                            int cluster, int resident) {
  KernelEntry entry;
  entry.function = function;
  entry.grid = grid;
  entry.block = block;
  const std::vector<bool> read = buffers_read(program, kernel),
                          written = buffers_written(program, kernel);
  std::vector<std::string> parameters;
  if (starts_ != Starts::Kernel)  // hides CUDA's own
    parameters.push_back(str("const ", calls("tc_block"), " blockIdx"));
  if (is_counted()) parameters.push_back(str("const ", integer, " points"));
  entry.buffers = buffers_by_use(kernel);
  for (int b : entry.buffers)
    parameters.push_back(str(pointer_type(b), written[b] && read[b] ? " " : " __restrict__ ",
                             pointer_name(program.buffers[b])));
  for (const Expr& size : sizes) parameters.push_back(str("const ", integer, " ", size));
  entry.sizes = sizes;
  const std::string residents = resident ? str(", ", resident) : "";
  const std::string clusters =
      cluster == 1 ? "" : str("__cluster_dims__(", cluster, ", 1, 1) ");
  attributes = str(clusters, "__launch_bounds__(", block, residents, ") ");
  const std::string head = starts_ == Starts::Kernel
                               ? str("extern \"C\" __global__ void ", attributes, function)
                               : "static __device__ void " + block_function(function);
  out.open(str(head, "(", join(parameters, ", "), ")"));
  return entry;
}

std::string CudaText::pointer_type(int buffer) {
  return str(buffers_written(program, kernel)[buffer] ? "" : "const ",
             storage_type(calls, program.buffers[buffer].type.dtype), "*");
}

}  // namespace tiny_compile
