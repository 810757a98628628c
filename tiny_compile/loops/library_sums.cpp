// The gradient of a bias is a sum over the rows of the gradient that a product has in its hands
// anyway. Two kernels, one call:
//
//   dW = dot(k: 64) load x[k*16 + i], load dz[k*40 + j]     rows(i: 16, j: 40)
//   db = sum(k: 64) load dz[k*40 + j]                       rows(j: 40)
// =>
//   m=40 n=16 k=64, A = dz, B = x transposed, D = dW, sums of A to db
//
// Where one kernel multiplies by gelu', the sums of its result are another such vector. That two
// kernels are one call is said by their launch, so that the memory plan gives db bytes of its own
// from there on. The sums keep their kernel: a library that has no algorithm for both is then
// asked for the product alone.
#include "tiny_compile/loops/library_sums.h"

#include <algorithm>

#include "tiny_compile/loops/axes.h"

namespace tiny_compile {
namespace {

bool is_scalar(const Kernel& kernel, int id, ScalarKind kind) {
  return kernel.scalars[id].kind == kind;
}

// What is cast, where that is half a width to f32 (or back, `narrows`): sums are in f32. Further
// casts round, and the library does not.
int without_cast(const Kernel& kernel, int id, bool narrows) {
  if (!is_scalar(kernel, id, ScalarKind::Apply) || kernel.scalars[id].op != Op::cast) return id;
  const int operand = kernel.scalars[id].operands[0];
  const DType from = kernel.scalars[operand].dtype, to = kernel.scalars[id].dtype;
  const bool sums =
      narrows ? from == DType::f32 && is_half(to) : is_half(from) && to == DType::f32;
  return sums ? operand : id;
}

bool is_same_place(const LibraryMatrix& lhs, const LibraryMatrix& rhs) {
  return lhs.buffer == rhs.buffer && lhs.offset == rhs.offset && lhs.ld == rhs.ld;
}

bool starts_aligned(const Program& program, const LibraryMatrix& matrix) {
  return matrix.buffer < 0 || (program.buffers[matrix.buffer].align % 16 == 0 &&
                               matrix.offset * size_of(matrix.dtype) % 16 == 0);
}

// Of which of the product's matrices these are the sums: of D over its columns, of A over k as it
// is stored, or of B likewise.
LibraryVector vector_of(const LibraryMatmul& x, const ColumnSums& sums) {
  auto fits = [&](const LibraryMatrix& matrix, bool transposed, int64_t width, int64_t count) {
    return is_same_place(sums.of, matrix) && matrix.transposed == transposed &&
           sums.width == width && sums.count == count;
  };
  if (fits(x.d, false, x.m, x.n)) return LibraryVector::GradientOfD;
  if (fits(x.a, false, x.m, x.k)) return LibraryVector::GradientOfA;
  if (fits(x.b, true, x.n, x.k)) return LibraryVector::GradientOfB;
  return LibraryVector::None;
}

std::string why_no_sums(const Program& program, const LibraryMatmul& x, LibraryVector vector,
                        const LibraryMatrix& to) {
  const bool of_result = vector == LibraryVector::GradientOfD;
  if (vector == LibraryVector::None) return "it sums another part, or along another axis";
  if (!x.batches.empty()) return "it is a product of batches";
  if (library_calls(x).size() > 1) return "the product is several calls";
  if (std::min({x.m, x.n, x.k}) == 1) return "it is a product of vectors";
  if (x.vector != LibraryVector::None) return "the library has one vector, here a bias";
  if (of_result && x.activation != Activation::GeluGradient)
    return "it sums a result only behind gelu'";
  if (!of_result && (x.activation != Activation::None || x.alpha != 1))
    return "it sums a factor only beside a plain product";
  if (x.a.dtype == DType::f64 || to.dtype != x.a.dtype || to.dtype != x.d.dtype)
    return "the sums, the factors and the result are not of one dtype, f32 or half of it";
  for (const LibraryMatrix& matrix : {x.a, x.b, x.d, x.saved, to}) {
    if (!starts_aligned(program, matrix)) return "its operands are not aligned";
  }
  return "";
}

// Puts `sums` into the product's launch; false where somebody reads them before it.
bool join_launches(Program& program, size_t product, int sums) {
  std::vector<std::vector<int>>& launches = program.launches;
  const auto own = std::find(launches.begin(), launches.end(), std::vector<int>{sums});
  if (own == launches.end()) return false;
  const int written = program.kernels[sums].steps.back().buffer;
  for (size_t l = static_cast<size_t>(own - launches.begin()) + 1; l <= product; l++) {
    for (int kernel : launches[l]) {
      if (buffers_read(program, program.kernels[kernel])[written]) return false;
    }
  }
  launches[product].push_back(sums);
  launches.erase(own);
  return true;
}

}  // namespace

std::optional<ColumnSums> column_sums(const Program& program, const Kernel& kernel) {
  if (kernel.steps.size() != 2 || kernel.steps[0].kind != StepKind::Reduce) return std::nullopt;
  const Kernel flat = collapse_axes(kernel);
  const Step &sum = flat.steps[0], &store = flat.steps[1];
  if (flat.rows != 1 || flat.axes.size() != 2 || sum.op != Op::sum || sum.inner.size() != 1 ||
      store.kind != StepKind::Store || !store.inner.empty())
    return std::nullopt;
  const Scalar& load = flat.scalars[without_cast(flat, sum.value, false)];
  const Axis &row = flat.axes[0], &inner = flat.axes[1];
  if (!is_plain(load) ||
      !is_scalar(flat, without_cast(flat, store.value, true), ScalarKind::Register) ||
      !row.extent.is_constant() || !inner.extent.is_constant())
    return std::nullopt;
  ColumnSums result{row.extent.constant(), inner.extent.constant(), {}, {}};
  result.of.buffer = load.buffer;
  result.of.dtype = load.dtype;
  result.to.buffer = store.buffer;
  result.to.dtype = program.buffers[store.buffer].type.dtype;
  const auto read = strides_of(load.index, flat.axes, result.of.offset),
             stored = strides_of(store.index, flat.axes, result.to.offset);
  if (!read || !stored || (*read)[0] != 1 || *stored != std::vector<int64_t>{1, 0})
    return std::nullopt;
  result.of.ld = (*read)[1];
  return result;
}

LibraryMatch with_sums(const Program& program, const LibraryMatmul& product,
                       const ColumnSums& sums) {
  const int of = sums.of.buffer;
  if (of != product.a.buffer && of != product.b.buffer && of != product.d.buffer) return {};
  LibraryMatmul both = product;
  both.vector = vector_of(product, sums);
  both.bias = sums.to;
  const std::string reason = why_no_sums(program, product, both.vector, sums.to);
  return reason.empty() ? LibraryMatch{both, ""} : LibraryMatch{std::nullopt, reason};
}

Program library_sums(const Program& program) {
  Program result = program;
  if (program.matmul == Matmul::Generated) return result;
  std::vector<std::optional<LibraryMatmul>> products;
  for (size_t k = 0; k < program.kernels.size(); k++) {
    const Kernel& kernel = program.kernels[k];
    const std::optional<ColumnSums> sums = column_sums(program, kernel);
    if (!sums) continue;
    for (size_t p = products.size(); p < program.kernels.size(); p++)
      products.push_back(library_matmul(program, program.kernels[p]).matmul);
    for (size_t l = 0; l < result.launches.size(); l++) {
      if (result.launches[l].size() != 1 || !products[result.launches[l][0]]) continue;
      const int product = result.launches[l][0];
      LibraryMatch match = with_sums(program, *products[product], *sums);
      if (match.matmul && join_launches(result, l, static_cast<int>(k))) break;
      if (match.matmul) match.reason = "its sums are read before it";
      if (!match.reason.empty())
        result.refusals.push_back(str(program.kernels[product].name, " + ", kernel.name,
                                      ": matmul is left to the library: ", match.reason));
    }
  }
  return result;
}

std::vector<LibraryCall> library_kernels(const Program& program) {
  std::vector<LibraryCall> calls(program.kernels.size());
  if (program.matmul == Matmul::Generated) return calls;
  for (size_t k = 0; k < calls.size(); k++) {
    const std::optional<Schedule>& schedule = program.kernels[k].schedule;
    const bool says = schedule && program.target == Target::Cuda;
    if (says && schedule->strategy != Strategy::Library) continue;
    std::optional<LibraryMatmul>& call = calls[k].matmul;
    call = library_matmul(program, program.kernels[k]).matmul;
    if (call && says) call->algorithm = schedule->algorithm, call->split_k = schedule->split_k;
  }
  for (const std::vector<int>& launch : program.launches) {
    if (launch.size() != 2 || !calls[launch[0]].matmul) continue;
    LibraryCall& call = calls[launch[0]];
    const auto sums = column_sums(program, program.kernels[launch[1]]);
    const LibraryMatch both = sums ? with_sums(program, *call.matmul, *sums) : LibraryMatch{};
    if (both.matmul) call = {both.matmul, launch[1]};
  }
  return calls;
}

}  // namespace tiny_compile
