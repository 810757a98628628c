// What is a .safetensors file? The length of a header, the header, the elements:
//
//   24 2 0 0 0 0 0 0 {"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}} <24 bytes>
//
// The header accounts for every byte, so that nothing is taken before it is known to be there.
#include <algorithm>
#include <cstring>

#include "tiny_compile/base/input_file.h"
#include "tiny_compile/base/output_file.h"
#include "tiny_compile/tensor/named_tensors.h"
#include "tiny_compile/tensor/npy.h"
#include "tiny_compile/tensor/safetensors_header.h"
#include "tiny_compile/tensor/zip.h"

namespace tiny_compile {
namespace {

constexpr uint64_t kMostHeader = 100'000'000;  // the format's own limit

std::string header_of(InputFile& in, const std::string& path) {
  const std::string digits = in.read(8);
  uint64_t length = 0;
  for (size_t k = digits.size(); k-- > 0;)
    length = 256 * length + static_cast<unsigned char>(digits[k]);
  if (digits.size() < 8 || length > kMostHeader)
    fail(path, " is no .safetensors file: its first 8 bytes are not the length of a header");
  std::string header = in.read(length);
  if (header.size() < length)
    fail(path, ": its header is cut off: ", header.size(), " of ", length,
         " bytes; fetch or save it again");
  return header;
}

// A C++ bool is 0 or 1, whatever the file says.
Tensor read_elements(InputFile& in, const SafetensorsEntry& entry, const std::string& path) {
  const std::string data = in.read(entry.end - entry.begin);
  if (data.size() < entry.end - entry.begin)
    fail(path, ": it is cut off in '", entry.name, "': ", data.size(), " of ",
         entry.end - entry.begin, " bytes; fetch or save it again");
  const Tensor tensor = empty_tensor(entry.dtype, entry.shape);
  if (entry.dtype != DType::boolean)
    std::copy(data.begin(), data.end(), reinterpret_cast<char*>(tensor.bytes()));
  else
    std::transform(data.begin(), data.end(), tensor.bytes(),
                   [](char c) { return std::byte{c != 0}; });
  return tensor;
}

}  // namespace

NamedTensors load_safetensors(const std::string& path, LoadOptions options) {
  InputFile in(path);
  const std::string header = header_of(in, path);
  NamedTensors tensors;
  for (const SafetensorsEntry& entry : parse_safetensors_header(header, path))
    tensors[entry.name] = read_elements(in, entry, path);
  if (!in.read(1).empty())
    fail(path, ": bytes follow the last tensor; the file is damaged: save it again");
  if (!options.allow_nan) check_no_nan(tensors, path);
  return tensors;
}

// Those with the largest elements first, so that each begins at a multiple of its element's size.
void save_safetensors(const std::string& path, const NamedTensors& tensors) {
  std::vector<std::pair<std::string, Tensor>> order;
  for (const auto& [name, tensor] : tensors) {
    if (!is_utf8(name) || name == "__metadata__")
      fail("cannot write ", path, ": a tensor must not be called '", name, "'");
    order.emplace_back(name,
                       on_host(tensor.is_contiguous() ? tensor : contiguous_copy(tensor)));
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& lhs, const auto& rhs) {
    return size_of(lhs.second.dtype()) > size_of(rhs.second.dtype());
  });
  std::vector<SafetensorsEntry> entries;
  std::vector<std::string_view> pieces(2);
  uint64_t end = 0;
  for (const auto& [name, tensor] : order) {
    pieces.push_back(bytes_of(tensor));
    entries.push_back({name, tensor.dtype(), tensor.shape(), end, end + pieces.back().size()});
    end = entries.back().end;
  }
  const std::string header = safetensors_header(entries);
  std::string length;
  for (int k = 0; k < 8; k++) length += static_cast<char>(header.size() >> (8 * k));
  pieces[0] = length;
  pieces[1] = header;
  write_whole(path, pieces);
}

}  // namespace tiny_compile
