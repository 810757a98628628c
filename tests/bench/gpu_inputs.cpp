// How do two programs get the same 800 MB without sending them? Both compute them.
#include "tests/bench/gpu_inputs.h"

#include "tiny_compile/base/math.h"
#include "tiny_compile/tensor/cuda_memory.h"

namespace bench {
namespace {

namespace tc = tiny_compile;
using tc::DType, tc::Tensor;

// Every bit of x changes half of the result's (Wellons' lowbias32).
uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

uint32_t word(const Input& input, int64_t i) {
  return mix(static_cast<uint32_t>(i) * 0x9e3779b9u + input.seed * 0x85ebca6bu);
}

float number(const Input& input, int64_t i) {
  const float whole = static_cast<float>(static_cast<int32_t>(word(input, i) >> 8) - 8388608);
  const float scaled = whole * (input.scale * 0x1p-23f);
  return scaled + input.shift;
}

template <typename T, typename Value>
void fill(const Tensor& storage, Value value) {
  T* at = storage.data<T>();
  const int64_t n = storage.numel();
#pragma omp parallel for
  for (int64_t i = 0; i < n; i++) at[i] = value(i);
}

template <typename T>
void fill_integers(const Tensor& storage, const Input& input) {
  const int64_t first = static_cast<int64_t>(input.shift);
  fill<T>(storage, [&](int64_t i) {
    return static_cast<T>(word(input, i) % static_cast<uint32_t>(input.classes) + first);
  });
}

Tensor filled_storage(const Input& input) {
  const Tensor storage = tc::empty_tensor(input.dtype, {input.count});
  switch (input.dtype) {
    case DType::f32: fill<float>(storage, [&](int64_t i) { return number(input, i); }); break;
    case DType::f16:
      fill<tc::prelude::tc_f16>(
          storage, [&](int64_t i) { return tc::prelude::tc_to_f16(number(input, i)); });
      break;
    case DType::bf16:
      fill<tc::prelude::tc_bf16>(
          storage, [&](int64_t i) { return tc::prelude::tc_to_bf16(number(input, i)); });
      break;
    case DType::i8: fill_integers<int8_t>(storage, input); break;
    case DType::u8: fill_integers<uint8_t>(storage, input); break;
    case DType::i32: fill_integers<int32_t>(storage, input); break;
    default: fill_integers<int64_t>(storage, input);
  }
  return storage;
}

Tensor view_of(const Input& input, const Tensor& storage) {
  return tc::with_layout(storage, input.shape, input.strides, input.start);
}

template <typename T>
int64_t sum_of(const std::byte* bytes, int64_t n) {
  const T* at = reinterpret_cast<const T*>(bytes);
  uint64_t sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (int64_t i = 0; i < n; i++) sum += static_cast<uint64_t>(static_cast<int64_t>(at[i]));
  return static_cast<int64_t>(sum);
}

}  // namespace

Input dense_input(DType dtype, tc::Sizes shape, uint32_t seed) {
  Input input;
  input.dtype = dtype;
  input.strides = tc::contiguous_strides(shape);
  input.count = tc::element_count(shape);
  input.shape = std::move(shape);
  input.seed = seed;
  return input;
}

void lay_out(Input& input, const std::string& layout) {
  const int64_t rows = input.shape[0], columns = input.shape[1];
  if (layout == "misaligned") {
    input.start = 1;
    input.count += 1;
  } else if (layout == "transposed") {
    input.strides = {1, rows};
  } else if (layout == "strided") {
    input.strides = {2 * columns, 2};
    input.count *= 2;
  } else {
    tc::fail("no layout '", layout, "'");
  }
}

Tensor make_input(const Input& input, tc::Device device) {
  return view_of(input, filled_storage(input).to(device));
}

Tensor blank_input(const Input& input, tc::Device device) {
  if (device.kind == tc::DeviceKind::Cpu) return make_input(input, device);
  auto data = std::make_shared<tc::TensorData>();
  data->dtype = input.dtype;
  data->layout = tc::row_major_layout({input.count});
  const size_t bytes = static_cast<size_t>(input.count) * tc::size_of(input.dtype);
  data->storage = tc::allocate_cuda(bytes, device.index);
  const tc::CudaScope scope(device.index);
  tc::driver::fill_bytes(reinterpret_cast<tc::CudaAddress>(data->storage->data()), 0, bytes,
                         tc::cuda_stream(device.index));
  return view_of(input, Tensor(std::move(data)));
}

Tensor shape_only(const Input& input) {
  auto data = std::make_shared<tc::TensorData>();
  data->dtype = input.dtype;
  data->layout = tc::layout_of(input.shape, input.strides);
  data->storage = tc::allocate_cpu(64);
  return Tensor(std::move(data));
}

int64_t checksum(const Tensor& tensor) {
  const tc::TensorData& d = tensor.info();
  const size_t width = tc::size_of(d.dtype);
  const size_t bytes = d.storage->bytes() / width * width;
  std::vector<std::byte> host;
  const std::byte* at = d.storage->data();
  if (tensor.device().kind != tc::DeviceKind::Cpu) {
    host.resize(bytes);
    d.storage->read(0, bytes, host.data());
    at = host.data();
  }
  const int64_t n = static_cast<int64_t>(bytes / width);
  if (width == 8) return sum_of<int64_t>(at, n);
  if (width == 1) return sum_of<int8_t>(at, n);
  return width == 4 ? sum_of<int32_t>(at, n) : sum_of<int16_t>(at, n);
}

}  // namespace bench
