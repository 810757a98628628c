// What is a tensor? A dtype, a shape, strides and an offset into shared bytes. Element
// [i, j] of a tensor lies at offset + i*strides[0] + j*strides[1], so that a view is
// only other numbers.
#include "tiny_compile/tensor/tensor.h"
#include "tiny_compile/tensor/element.h"

#include <algorithm>
#include <cstring>

namespace tiny_compile {
namespace {

template <typename... Parts>
[[noreturn]] void fail_here(const Here& here, const Parts&... parts) {
  fail_at({here.file_name(), static_cast<int>(here.line())}, tiny_compile::str(parts...));
}

[[noreturn]] void fail_traced(const char* what, const Here& here) {
  fail_here(here, what,
            ": this tensor is being traced and has no value yet; return it from the compiled "
            "function, or use where() instead of a branch on it");
}

void need_trace_free(const TensorData& data, const char* what, const Here& here) {
  if (data.trace) fail_traced(what, here);
}

// A number read while a function is traced would be the same at every later call.
void need_number(const TensorData& data, const char* what, const Here& here) {
  need_trace_free(data, what, here);
  if (Origins::current())
    fail_here(here, what,
              ": a function that is being traced would see this number at its "
              "first call only; use the tensor itself, or pass the number as "
              "an argument");
}

void need_value(const TensorData& data, const char* what, const Here& here) {
  need_trace_free(data, what, here);
  if (data.storage->device().kind != DeviceKind::Cpu)
    fail_here(here, what, ": the tensor is on ", data.storage->device().str(),
              "; call .to(tc::cpu) first");
}

std::byte* address(const TensorData& data) {
  return data.storage->data() + data.offset * size_of(data.dtype);
}

// The Literal as a C++ value: exact for integers, through double otherwise.
template <typename T>
T converted(const Literal& literal) {
  if constexpr (std::is_same_v<T, prelude::tc_f16> || std::is_same_v<T, prelude::tc_bf16>) {
    return T{static_cast<unsigned short>(Literal::of(dtype_of<T>(), literal.as_double()).bits)};
  } else {
    if (is_float(literal.dtype)) return prelude::tc_cast<T>(literal.as_double());
    if (literal.dtype == DType::u64)
      return prelude::tc_cast<T>(static_cast<unsigned long long>(literal.bits));
    return prelude::tc_cast<T>(static_cast<long long>(literal.as_integer()));
  }
}

}  // namespace

LayoutPointer layout_of(Sizes shape, Sizes strides) {
  return std::make_shared<TensorLayout>(TensorLayout{std::move(shape), std::move(strides), {}});
}

LayoutPointer row_major_layout(Sizes shape) {
  Sizes strides = contiguous_strides(shape);
  return layout_of(std::move(shape), std::move(strides));
}

void Tensor::fail_without_values() const {
  if (!data_) fail("this tensor is undefined (default-constructed): assign one to it first");
  fail(data_->gone);
}

int Tensor::rank() const {
  return static_cast<int>(std::max(info().shape().size(), info().layout->symbolic.size()));
}

// A handle's own shape is written once: what was specialised stays so.
const Sizes& Tensor::shape(Here here) const {
  if (info().layout->symbolic.empty()) return data_->shape();
  const SizeList known = sizes(here);
  data_->layout = row_major_layout(Sizes(known.begin(), known.end()));
  return data_->shape();
}

SizeList Tensor::sizes(Here here) const {
  const TensorLayout& layout = *info().layout;
  return layout.symbolic.empty() ? SizeList(layout.shape) : SizeList(layout.symbolic, here);
}

Size Tensor::size(int64_t axis, Here here) const {
  if (axis < -rank() || axis >= rank())
    fail("size(", axis, "): the tensor has ", rank(), " axes");
  return sizes(here)[static_cast<size_t>(axis < 0 ? axis + rank() : axis)];
}

Size Tensor::numel(Here here) const {
  const TensorLayout& layout = *info().layout;
  return layout.symbolic.empty() ? Size(element_count(layout.shape))
                                 : Size(product(layout.symbolic), here);
}

bool Tensor::is_contiguous() const {
  const TensorData& d = info();
  int64_t expected = 1;
  for (size_t axis = d.shape().size(); axis-- > 0;) {
    if (d.shape()[axis] == 0) return true;
    if (d.shape()[axis] != 1 && d.strides()[axis] != expected)
      return element_count(d.shape()) == 0;
    expected *= d.shape()[axis];
  }
  return true;
}

std::byte* Tensor::bytes(Here here) const {
  const TensorData& d = info();
  need_value(d, "data()", here);
  return address(d);
}

template <typename T>
T* Tensor::data(Here here) const {
  const TensorData& d = info();
  need_value(d, "data()", here);
  if (d.dtype != dtype_of<T>())
    fail_here(here, "data<", dtype_of<T>(), ">(): the tensor holds ", d.dtype,
              "; ask for that type or convert with .to()");
  return reinterpret_cast<T*>(address(d));
}

template <typename T>
T Tensor::item(Here here) const {
  need_number(info(), "item()", here);
  if (numel() != 1) fail_here(here, "item(): the tensor has ", numel(), " elements, not one");
  const Tensor host = on_host(*this);
  const TensorData& d = host.info();
  return converted<T>(literal_at(d.dtype, address(d)));
}

template <typename T>
std::vector<T> Tensor::to_vector(Here here) const {
  need_number(info(), "to_vector()", here);
  const Tensor host = on_host(*this);
  const TensorData& d = host.info();
  std::vector<T> result;
  result.reserve(static_cast<size_t>(numel()));
  const int64_t width = size_of(d.dtype);
  for_each_offset(d.shape(), d.strides(), [&](int64_t offset) {
    result.push_back(converted<T>(literal_at(d.dtype, address(d) + offset * width)));
  });
  return result;
}

Literal Tensor::element(const Sizes& index) const {
  need_trace_free(info(), "element()", Here::current());
  const Tensor host = on_host(*this);
  const TensorData& d = host.info();
  if (index.size() != d.shape().size())
    fail("element(): ", index.size(), " indices for ", rank(), " axes");
  int64_t offset = 0;
  for (size_t k = 0; k < index.size(); k++) {
    if (index[k] < 0 || index[k] >= d.shape()[k])
      fail("element(): index ", index[k], " is out of range for size ", d.shape()[k]);
    offset += index[k] * d.strides()[k];
  }
  const Literal value = literal_at(d.dtype, address(d) + offset * size_of(d.dtype));
  const bool is_nan = is_float(d.dtype) && value.as_double() != value.as_double();
  return is_nan ? Literal::of(d.dtype, value.as_double()) : value;
}

Tensor empty_tensor(DType dtype, Sizes shape) {
  auto data = std::make_shared<TensorData>();
  data->dtype = dtype;
  const size_t bytes = static_cast<size_t>(element_count(shape)) * size_of(dtype);
  try {
    data->storage = allocate_cpu(bytes);
  } catch (const Error& error) {
    fail("a tensor ", dtype, "[", join(shape, ","), "]: ", error.what());
  }
  data->layout = row_major_layout(std::move(shape));
  return Tensor(std::move(data));
}

Tensor filled_tensor(const Literal& value, Sizes shape) {
  Tensor result = empty_tensor(value.dtype, std::move(shape));
  const size_t width = size_of(value.dtype);
  std::byte* at = result.bytes();
  for (int64_t i = result.numel(); i-- > 0; at += width) std::memcpy(at, &value.bits, width);
  return result;
}

Tensor with_layout(const Tensor& base, Sizes shape, Sizes strides, int64_t offset) {
  auto data = std::make_shared<TensorData>(base.info());
  data->layout = layout_of(std::move(shape), std::move(strides));
  data->offset = offset;
  return Tensor(std::move(data));
}

std::pair<int64_t, int64_t> byte_span(const TensorData& data) {
  if (element_count(data.shape()) == 0) return {0, 0};
  int64_t low = data.offset, high = data.offset;
  for (size_t axis = 0; axis < data.shape().size(); axis++) {
    const int64_t reach = (data.shape()[axis] - 1) * data.strides()[axis];
    (reach < 0 ? low : high) += reach;
  }
  const int64_t width = size_of(data.dtype);
  return {low * width, (high - low + 1) * width};
}

bool has_reversed_axes(const Tensor& tensor) {
  const Sizes& strides = tensor.strides();
  return std::any_of(strides.begin(), strides.end(), [](int64_t s) { return s < 0; });
}

int alignment(const Tensor& tensor) {
  const TensorData& data = tensor.info();
  if (tensor.device() == cpu) return 16;
  const size_t address = reinterpret_cast<size_t>(data.storage->data()) +
                         static_cast<size_t>(data.offset) * size_of(data.dtype);
  int align = 16;
  while (address % static_cast<size_t>(align) != 0) align /= 2;
  return align;
}

template <typename T>
Tensor from_vector(const std::vector<T>& values, const Sizes& shape, Here here) {
  if (element_count(shape) != static_cast<int64_t>(values.size()))
    fail_here(here, "from_vector: ", values.size(), " values do not fill shape [",
              join(shape, ","), "]");
  Tensor result = empty_tensor(dtype_of<T>(), shape);
  T* out = reinterpret_cast<T*>(result.bytes());
  for (size_t i = 0; i < values.size(); i++) out[i] = values[i];
  return result;
}

template <typename T>
Tensor from_vector(const std::vector<T>& values, Here here) {
  return from_vector(values, {static_cast<int64_t>(values.size())}, here);
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << tensor.str();
}

#define TC_INSTANTIATE(T)                                      \
  template T* Tensor::data<T>(Here) const;                     \
  template T Tensor::item<T>(Here) const;                      \
  template std::vector<T> Tensor::to_vector<T>(Here) const;    \
  template Tensor from_vector<T>(const std::vector<T>&, Here); \
  template Tensor from_vector<T>(const std::vector<T>&, const Sizes&, Here);
TC_INSTANTIATE(float)
TC_INSTANTIATE(double)
TC_INSTANTIATE(prelude::tc_f16)
TC_INSTANTIATE(prelude::tc_bf16)
TC_INSTANTIATE(int8_t)
TC_INSTANTIATE(uint8_t)
TC_INSTANTIATE(int32_t)
TC_INSTANTIATE(int64_t)
TC_INSTANTIATE(long long)
TC_INSTANTIATE(uint32_t)
TC_INSTANTIATE(uint64_t)
TC_INSTANTIATE(unsigned long long)
TC_INSTANTIATE(bool)
#undef TC_INSTANTIATE

}  // namespace tiny_compile
