// Which file is meant, and may its numbers be used?
//
//   load_tensors("gpt.npz")   =>   {"blocks.0.weight": f32[768,768], ..}
//   load_tensors("gpt.npz")   =>   error: gpt.npz: NaN in 'blocks.0.weight' at [3,17]; ..
#include "tiny_compile/tensor/named_tensors.h"

#include <cstring>
#include <limits>

#include "tiny_compile/base/input_file.h"
#include "tiny_compile/base/output_file.h"
#include "tiny_compile/tensor/npy.h"
#include "tiny_compile/tensor/zip.h"

namespace tiny_compile {
namespace {

constexpr std::string_view kArray = ".npy";

// A NaN's bits, without the sign, are above infinity's.
template <typename Word>
int64_t first_above(const Tensor& tensor, Word infinity) {
  const Word size = std::numeric_limits<Word>::max() / 2;
  for (int64_t i = 0; i < tensor.numel(); i++) {
    Word word;
    std::memcpy(&word, tensor.bytes() + static_cast<size_t>(i) * sizeof word, sizeof word);
    if ((word & size) > infinity) return i;
  }
  return -1;
}

int64_t first_nan(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::f16: return first_above<uint16_t>(tensor, 0x7C00);
    case DType::bf16: return first_above<uint16_t>(tensor, 0x7F80);
    case DType::f32: return first_above<uint32_t>(tensor, 0x7F800000);
    case DType::f64: return first_above<uint64_t>(tensor, 0x7FF0000000000000);
    default: return -1;
  }
}

Sizes index_of(int64_t number, const Sizes& shape) {
  Sizes index(shape.size());
  for (size_t axis = shape.size(); axis-- > 0; number /= shape[axis])
    index[axis] = number % shape[axis];
  return index;
}

[[noreturn]] void refuse_name(const std::string& path) {
  fail(path, ": weights are kept in .safetensors or .npz files; give it one of these names");
}

// The array of an entry "name.npy".
Tensor read_array(const ZipEntry& entry, const std::string& path) {
  const std::string name = str(path, ": '", entry.name, "'");
  std::string_view rest = entry.pieces[0];
  const NextBytes read = [&](size_t bytes) {
    const std::string_view next = rest.substr(0, bytes);
    rest.remove_prefix(next.size());
    return std::string(next);
  };
  const Tensor tensor = read_npy(read, name);
  if (!rest.empty())
    fail(name, " holds ", rest.size(), " bytes more than its array; save it again");
  return tensor;
}

}  // namespace

void check_no_nan(const NamedTensors& tensors, const std::string& path) {
  for (const auto& [name, tensor] : tensors) {
    const int64_t found = first_nan(tensor);
    if (found < 0) continue;
    fail(path, ": NaN in '", name, "' at [", join(index_of(found, tensor.shape()), ","),
         "]; take an earlier checkpoint, or load it with {.allow_nan = true}");
  }
}

NamedTensors load_tensors(const std::string& path, LoadOptions options) {
  if (path.ends_with(".npz")) return load_npz(path, options);
  if (path.ends_with(".safetensors")) return load_safetensors(path, options);
  refuse_name(path);
}

void save_tensors(const std::string& path, const NamedTensors& tensors) {
  if (path.ends_with(".npz")) return save_npz(path, tensors);
  if (path.ends_with(".safetensors")) return save_safetensors(path, tensors);
  refuse_name(path);
}

NamedTensors load_npz(const std::string& path, LoadOptions options) {
  const std::string archive = InputFile(path).read(SIZE_MAX);
  NamedTensors tensors;
  for (const ZipEntry& entry : read_zip(archive, path)) {
    if (!entry.name.ends_with(kArray))
      fail(path, ": '", entry.name, "' is no array: np.savez names them 'name.npy'");
    const std::string name = entry.name.substr(0, entry.name.size() - kArray.size());
    tensors[name] = read_array(entry, path);
  }
  if (!options.allow_nan) check_no_nan(tensors, path);
  return tensors;
}

void save_npz(const std::string& path, const NamedTensors& tensors) {
  NamedTensors flat;
  std::map<std::string, std::string> headers;
  std::vector<ZipEntry> entries;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.dtype() == DType::bf16)
      fail("cannot write ", path, ": NumPy has no bf16, which '", name,
           "' is; write .safetensors, or f32 by tensor.to(tc::float32)");
    if (!is_utf8(name) || name.size() > 60000)
      fail("cannot write ", path, ": '", name.substr(0, 80), "' is no name");
    flat[name] = on_host(tensor.is_contiguous() ? tensor : contiguous_copy(tensor));
    headers[name] = npy_header(flat[name]);
    entries.push_back({name + std::string(kArray), {headers[name], bytes_of(flat[name])}});
  }
  std::vector<std::string> frame;
  write_whole(path, zip_pieces(entries, frame));
}

}  // namespace tiny_compile
