// Where do numbers come from? constant, iota and philox are the sources; the rest is arithmetic
// on them, so that a random tensor is the same one however it is computed:
//
//   rand: philox(key, draw)[i] >> 8, times 2^-24
#include "tiny_compile/trace/creation.h"
#include "tiny_compile/tensor/cuda_memory.h"

#include <cstring>

namespace tiny_compile {
namespace {

Tensor iota(const Size& count, const Location& where) {
  Node node;
  node.op = Op::iota;
  node.type = {DType::i64, {count.expr()}};
  return apply(std::move(node), {}, where);
}

Tensor random_words(const SizeList& shape, const Location& where) {
  const RandomKey key = next_draw();
  Node node;
  node.op = Op::philox;
  node.type = {DType::u32, shape.exprs()};
  node.set(Key::draw, {key.draw});
  return apply(std::move(node), {key.key}, where);
}

// Uniform in [0, 1), 24 bits.
Tensor uniform(const SizeList& shape, const Location& where) {
  return cast_to(random_words(shape, where) >> 8, DType::f32, where) * 0x1p-24;
}

void check_float(DType dtype, const char* name, const Location& where) {
  if (!is_float(dtype))
    fail_at(current_place(where),
            str(name, ": ", dtype, " is no float; use randint for integers"));
}

void check_sizes(const SizeList& shape, const Location& where) {
  try {
    const bool numbers = product(shape.exprs()).is_constant();
    if (numbers) element_count({shape.begin(), shape.end()});
  } catch (const Error& error) {
    fail_at(current_place(where), error.what());
  }
}

// On the device of x.
Tensor beside(const Operand& x, const Tensor& made) {
  return x.is_scalar() ? made : copy_to(made, x.tensor.device());
}

SizeList shape_of(const Operand& x) {
  return x.is_scalar() ? SizeList() : seen(*x.variable, x.where).sizes();
}

// Tensors of one shape as the rows of one with values, while tracing too.
Tensor stacked(const std::vector<Tensor>& rows, Here here) {
  Sizes shape = rows[0].shape();
  shape.insert(shape.begin(), static_cast<int64_t>(rows.size()));
  const Tensor result = empty_tensor(rows[0].dtype(), shape);
  const size_t bytes = static_cast<size_t>(rows[0].numel() * size_of(rows[0].dtype()));
  for (size_t k = 0; k < rows.size(); k++) {
    if (rows[k].shape() != rows[0].shape())
      fail_at(location_of(here), str("tensor: row 0 is [", join(rows[0].shape(), ","),
                                     "], row ", k, " [", join(rows[k].shape(), ","), "]"));
    std::memcpy(result.bytes() + k * bytes, rows[k].bytes(), bytes);
  }
  return result;
}

}  // namespace

Tensor full(const SizeList& shape, double value, DType dtype, Here here) {
  check_sizes(shape, location_of(here));
  Node node;
  node.op = Op::constant;
  node.type = {dtype, shape.exprs()};
  node.value = Literal::of(dtype, value);
  return apply(std::move(node), {}, location_of(here));
}

Tensor zeros(const SizeList& shape, DType dtype, Here here) {
  return full(shape, 0, dtype, here);
}
Tensor ones(const SizeList& shape, DType dtype, Here here) {
  return full(shape, 1, dtype, here);
}

Tensor zeros_like(const Operand& x) {
  const Scope scope(x.where);
  return beside(x, full(shape_of(x), 0, result_type({&x})));
}

Tensor ones_like(const Operand& x) {
  const Scope scope(x.where);
  return beside(x, full(shape_of(x), 1, result_type({&x})));
}

Tensor full_like(const Operand& x, double value) {
  const Scope scope(x.where);
  return beside(x, full(shape_of(x), value, result_type({&x})));
}

Tensor rand_like(const Operand& x) {
  const Scope scope(x.where);
  return beside(x, rand(shape_of(x), result_type({&x})));
}

Tensor randn_like(const Operand& x) {
  const Scope scope(x.where);
  return beside(x, randn(shape_of(x), result_type({&x})));
}

Tensor arange(const Size& start, const Size& stop, int64_t step, Here here) {
  const Location where = location_of(here);
  const Scope scope(where);
  if (step == 0) fail_at(current_place(where), "arange: the step is 0");
  const Size span = max(step > 0 ? stop - start : start - stop, Size(0));
  const int64_t stride = std::abs(step);
  return iota((span + (stride - 1)) / stride, where) * step + start;
}

Tensor arange(const Size& stop, Here here) { return arange(0, stop, 1, here); }

Tensor linspace(double first, double last, int64_t count, Here here) {
  const Location where = location_of(here);
  const Scope scope(where);
  const double step = count > 1 ? (last - first) / static_cast<double>(count - 1) : 0;
  return cast_to(cast_to(iota(count, where), DType::f64, where) * step + first, DType::f32,
                 where);
}

Tensor eye(const Size& size, DType dtype, Here here) {
  const Location where = location_of(here);
  const Scope scope(where);
  const Tensor numbers = iota(size, where);
  return cast_to(unsqueeze(numbers, 1) == numbers, dtype, where);
}

Tensor rand(const SizeList& shape, DType dtype, Here here) {
  const Location where = location_of(here);
  const Scope scope(where);
  check_float(dtype, "rand", where);
  return cast_to(uniform(shape, where), dtype, where);
}

// sqrt(-2 log(1 - u)) cos(2 pi v)
Tensor randn(const SizeList& shape, DType dtype, Here here) {
  const Location where = location_of(here);
  const Scope scope(where);
  check_float(dtype, "randn", where);
  const Tensor u = uniform(shape, where), v = uniform(shape, where);
  const Tensor wave = cos(v * 6.283185307179586);
  return cast_to(sqrt(log(1.0 - u) * -2.0) * wave, dtype, where);
}

// word * range / 2^32, rounded down: 64-bit arithmetic for ranges of up to 2^32.
Tensor randint(int64_t low, int64_t high, const SizeList& shape, Here here) {
  const Location where = location_of(here);
  const Scope scope(where);
  if (high <= low || high - low > (int64_t{1} << 31))
    fail_at(current_place(where),
            str("randint: [", low, ", ", high, ") is empty or wider than 2^31"));
  return ((cast_to(random_words(shape, where), DType::i64, where) * (high - low)) >> 32) + low;
}

template <PlainNumber T>
Tensor tensor(std::initializer_list<T> values, Here here) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    return from_vector(std::vector<int64_t>(values.begin(), values.end()), here);
  } else {
    return from_vector(std::vector<T>(values), here);
  }
}

template <PlainNumber T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> rows, Here here) {
  std::vector<Tensor> parts;
  for (const std::initializer_list<T>& row : rows) parts.push_back(tensor(row, here));
  return stacked(parts, here);
}

template <PlainNumber T>
Tensor tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> planes,
              Here here) {
  std::vector<Tensor> parts;
  for (const std::initializer_list<std::initializer_list<T>>& plane : planes)
    parts.push_back(tensor(plane, here));
  return stacked(parts, here);
}

#define X(T)                                                                               \
  template Tensor tensor(std::initializer_list<T> values, Here here);                      \
  template Tensor tensor(std::initializer_list<std::initializer_list<T>> rows, Here here); \
  template Tensor tensor(                                                                  \
      std::initializer_list<std::initializer_list<std::initializer_list<T>>> planes,       \
      Here here);
X(float)
X(double)
X(int)
X(int64_t)
X(bool)
#undef X

}  // namespace tiny_compile
