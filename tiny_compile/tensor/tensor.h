// tc::Tensor: a handle to a strided view of storage, or, while a function is traced, to a node.
//
// Handles are cheap to copy and share storage; tensors are not changed by ops. Outside
// `compile` every op runs at once. Methods that compute are defined in trace/, where an op is
// either recorded or run; this module knows memory only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <source_location>
#include <vector>

#include "tiny_compile/base/dtype.h"
#include "tiny_compile/base/error.h"
#include "tiny_compile/base/literal.h"
#include "tiny_compile/base/math.h"
#include "tiny_compile/tensor/element.h"
#include "tiny_compile/tensor/size.h"
#include "tiny_compile/tensor/sizes.h"
#include "tiny_compile/tensor/storage.h"
#include "tiny_compile/tensor/variable.h"

namespace tiny_compile {

class Trace;  // trace/tracer.h

// Which element lies where. Never changed, so that a function's results can share one at each call.
struct TensorLayout {
  Sizes shape;     // empty where `symbolic` is not
  Sizes strides;   // in elements; may be 0 (expand) or negative (flip)
  Shape symbolic;  // the shape while traced, where a size is no number
};
using LayoutPointer = std::shared_ptr<const TensorLayout>;
LayoutPointer layout_of(Sizes shape, Sizes strides);
LayoutPointer row_major_layout(Sizes shape);

struct TensorData {
  DType dtype = DType::f32;
  int node = -1;           // of `trace`
  Trace* trace = nullptr;  // that recorded it
  LayoutPointer layout;
  int64_t offset = 0;                // of element [0,...,0], in elements
  std::shared_ptr<Storage> storage;  // null while traced
  std::string gone;                  // why it has no values any more (it was donated), else ""

  const Sizes& shape() const { return layout->shape; }
  const Sizes& strides() const { return layout->strides; }
};

// The 2 of x[2] and the user's line.
struct Index {
  Index(int64_t value, Here here = Here::current()) : value(value), here(here) {}  // NOLINT
  int64_t value;
  Here here;
};

class Tensor {
 public:
  Tensor() = default;  // undefined: using it throws tc::Error
  explicit Tensor(std::shared_ptr<TensorData> data) : data_(std::move(data)) {}
  Tensor(const Tensor& other) : data_(other.data_) { note_copy(other); }
  Tensor(Tensor&& other) noexcept : data_(std::move(other.data_)) { note_move(other); }
  Tensor& operator=(const Tensor& other) {
    if (this == &other) return *this;
    data_ = other.data_;
    note_copy(other);
    return *this;
  }
  Tensor& operator=(Tensor&& other) noexcept {
    data_ = std::move(other.data_);
    note_move(other);
    return *this;
  }

  bool defined() const { return data_ != nullptr; }
  bool is_traced() const { return data_ && data_->trace; }
  const TensorData& info() const {  // throws where undefined or donated
    if (!data_ || !data_->gone.empty()) fail_without_values();
    return *data_;
  }
  const std::shared_ptr<TensorData>& handle() const { return data_; }

  DType dtype() const { return info().dtype; }
  const Sizes& shape(Here here = Here::current()) const;  // numbers: specialises symbolic sizes
  SizeList sizes(Here here = Here::current()) const;      // the same, symbolic ones as they are
  const Sizes& strides() const { return info().strides(); }
  int rank() const;
  int dim() const { return rank(); }                           // PyTorch's name
  Size size(int64_t axis, Here here = Here::current()) const;  // negative: from the end
  Size numel(Here here = Here::current()) const;
  Device device() const { return info().storage ? info().storage->device() : cpu; }
  bool is_contiguous() const;  // row-major, PyTorch's definition

  // Reading values. A traced tensor has none: these throw tc::Error naming the caller's line.
  // data<T>() needs T to match the dtype and gives the address of element [0,...,0].
  template <typename T>
  T* data(Here here = Here::current()) const;
  std::byte* bytes(Here here = Here::current()) const;  // data<T>() without the type
  template <typename T>
  T item(Here here = Here::current()) const;  // of one element, converted
  template <typename T>
  std::vector<T> to_vector(Here here = Here::current()) const;  // row-major, converted
  Literal element(const Sizes& index) const;                    // one element, bounds checked
  explicit operator bool() const;  // of one element; throws while traced
  std::string str() const;         // as PyTorch prints it

  // Ops (trace/methods.cpp). Axes may be negative; x.sum(1) is x.sum({1}); {} means all axes.
  Tensor sum(const Axes& axes = {}, bool keepdim = false, Here = Here::current()) const;
  Tensor prod(const Axes& axes = {}, bool keepdim = false, Here = Here::current()) const;
  Tensor mean(const Axes& axes = {}, bool keepdim = false, Here = Here::current()) const;
  Tensor var(const Axes& axes = {}, int64_t correction = 1, bool keepdim = false,
             Here = Here::current()) const;
  Tensor std(const Axes& axes = {}, int64_t correction = 1, bool keepdim = false,
             Here = Here::current()) const;
  Tensor norm(double p = 2, const Axes& axes = {}, bool keepdim = false,
              Here = Here::current()) const;
  Tensor logsumexp(const Axes& axes, bool keepdim = false, Here = Here::current()) const;
  Tensor max(const Axes& axes = {}, bool keepdim = false, Here = Here::current()) const;
  Tensor min(const Axes& axes = {}, bool keepdim = false, Here = Here::current()) const;
  Tensor argmax(std::optional<int64_t> axis = {}, bool keepdim = false,
                Here = Here::current()) const;
  Tensor argmin(std::optional<int64_t> axis = {}, bool keepdim = false,
                Here = Here::current()) const;
  Tensor any(const Axes& axes = {}, bool keepdim = false, Here = Here::current()) const;
  Tensor all(const Axes& axes = {}, bool keepdim = false, Here = Here::current()) const;
  using Pair = std::pair<Tensor, Tensor>;  // values and places
  Pair sort(int64_t axis = -1, bool descending = false, Here = Here::current()) const;
  Tensor argsort(int64_t axis = -1, bool descending = false, Here = Here::current()) const;
  Pair topk(int64_t k, int64_t axis = -1, bool largest = true, Here = Here::current()) const;
  Tensor softmax(int64_t axis, Here = Here::current()) const;
  Tensor log_softmax(int64_t axis, Here = Here::current()) const;
  Tensor matmul(const Tensor& other, Here = Here::current()) const;

  Tensor reshape(SizeList shape, Here = Here::current()) const;  // one size may be -1
  Tensor view(SizeList shape, Here = Here::current()) const;     // throws where it would copy
  Tensor view(DType dtype, Here = Here::current()) const;  // the same bits, of the same size
  Tensor flatten(int64_t first = 0, int64_t last = -1, Here = Here::current()) const;
  Tensor permute(Sizes axes, Here = Here::current()) const;
  Tensor transpose(int64_t axis0, int64_t axis1, Here = Here::current()) const;
  Tensor t(Here = Here::current()) const;                       // rank <= 2
  Tensor expand(SizeList shape, Here = Here::current()) const;  // -1 keeps a size
  Tensor slice(int64_t axis, const std::optional<Size>& start,
               const std::optional<Size>& stop = {}, int64_t step = 1,
               Here = Here::current()) const;  // Python's, step > 0
  Tensor select(int64_t axis, int64_t index, Here = Here::current()) const;
  Tensor operator[](Index index) const;  // select(0, index)
  Tensor narrow(int64_t axis, const Size& start, const Size& length,
                Here = Here::current()) const;
  Tensor flip(const Axes& axes, Here = Here::current()) const;
  Tensor unfold(int64_t axis, int64_t size, int64_t step, Here = Here::current()) const;
  Tensor squeeze(std::optional<int64_t> axis = {}, Here = Here::current()) const;
  Tensor unsqueeze(int64_t axis, Here = Here::current()) const;
  Tensor contiguous(Here = Here::current()) const;
  Tensor clone(Here = Here::current()) const;

  Tensor to(DType dtype, Here = Here::current()) const;
  Tensor to(Device device) const;
  Tensor exp(Here = Here::current()) const;
  Tensor log(Here = Here::current()) const;
  Tensor tanh(Here = Here::current()) const;
  Tensor sqrt(Here = Here::current()) const;
  Tensor abs(Here = Here::current()) const;
  Tensor relu(Here = Here::current()) const;
  Tensor sigmoid(Here = Here::current()) const;
  Tensor pow(double exponent, Here = Here::current()) const;

 private:
  friend class Variable;
  [[noreturn]] void fail_without_values() const;
  void note_copy(const Tensor& from) const {
    if (Origins* origins = Origins::current()) origins->copied(*this, from);
  }
  void note_move(const Tensor& from) const noexcept {
    if (Origins* origins = Origins::current()) origins->moved(*this, from);
  }

  std::shared_ptr<TensorData> data_;
  mutable std::shared_ptr<const void> life_;  // this object's own, whatever it holds
};

// Concrete tensors, without the op machinery ---------------------------------------------------
Tensor empty_tensor(DType dtype, Sizes shape);  // uninitialised, row-major, CPU
Tensor filled_tensor(const Literal& value, Sizes shape);
Tensor with_layout(const Tensor& base, Sizes shape, Sizes strides, int64_t offset);  // shares
Tensor contiguous_copy(const Tensor& tensor);  // always copies, to the CPU
Tensor on_host(const Tensor& tensor);  // itself on the CPU, else a copy of the same layout
bool has_reversed_axes(const Tensor& tensor);  // a negative stride
// Bytes, at most 16, that a GPU's address of element [0,...,0] is a multiple of; a CPU's code
// reads from any address: 16.
int alignment(const Tensor& tensor);
std::pair<int64_t, int64_t> byte_span(const TensorData& data);  // first byte, bytes to the last

// A row-major tensor of these values, of one axis or of the shape, as in from_vector(v, {2, 1}). Throws
// where the count does not match.
template <typename T>
Tensor from_vector(const std::vector<T>& values, Here here = Here::current());
template <typename T>
Tensor from_vector(const std::vector<T>& values, const Sizes& shape, Here = Here::current());

// tensor/compare.cpp: same dtype, shape and bits, where all NaNs are equal (the numeric contract). first_difference
// gives the row-major index of the first element that differs.
bool same_bits(const Tensor& lhs, const Tensor& rhs);
std::optional<int64_t> first_difference(const Tensor& lhs, const Tensor& rhs);

std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

}  // namespace tiny_compile
