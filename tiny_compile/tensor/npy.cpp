// What is a .npy file? A mark, a version, a header that is a Python dictionary, and the
// elements:
//   \x93NUMPY 1 0 <length> {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
#include "tiny_compile/tensor/npy.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

namespace tiny_compile {
namespace {

struct Row {
  const char* descr;
  DType dtype;
};
constexpr Row kTypes[] = {{"<f4", DType::f32},    {"<f8", DType::f64}, {"<f2", DType::f16},
                          {"|i1", DType::i8},     {"|u1", DType::u8},  {"<i4", DType::i32},
                          {"<i8", DType::i64},    {"<u4", DType::u32}, {"<u8", DType::u64},
                          {"|b1", DType::boolean}};

// The text after 'key': up to `end`.
std::string field(const std::string& header, const std::string& key, const char* end,
                  const std::string& path) {
  const size_t at = header.find("'" + key + "'");
  const size_t colon = at == std::string::npos ? at : header.find(':', at);
  const size_t stop = colon == std::string::npos ? colon : header.find_first_of(end, colon + 1);
  if (stop == std::string::npos)
    fail(path, ": its header lacks '", key, "': this is no .npy file that NumPy wrote");
  std::string text = header.substr(colon + 1, stop - colon);
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  return text;
}

Sizes parse_shape(const std::string& text, const std::string& path) {
  Sizes shape;
  int64_t number = -1;
  for (char c : text) {
    if (c >= '0' && c <= '9') {
      number = std::max<int64_t>(number, 0) * 10 + (c - '0');
      if (number > (int64_t{1} << 48)) fail(path, ": a size in ", text, " is too large");
    } else if (number >= 0) {
      shape.push_back(number);
      number = -1;
    }
  }
  return shape;
}

DType parse_descr(const std::string& descr, const std::string& path) {
  for (const Row& row : kTypes) {
    if (descr.find(row.descr) != std::string::npos) return row.dtype;
  }
  fail(path, ": element type ", descr,
       " is not one of ours (little-endian floats and integers, bool)");
}

}  // namespace

Tensor load_npy(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail("cannot read ", path);
  std::ostringstream content;
  content << in.rdbuf();
  const std::string data = content.str();
  if (data.size() < 12 || std::memcmp(data.data(), "\x93NUMPY", 6) != 0)
    fail(path, " is no .npy file");
  const bool wide = data[6] >= 2;
  auto byte = [&](size_t i) {
    return static_cast<size_t>(static_cast<unsigned char>(data[i]));
  };
  const size_t start = wide ? 12 : 10;
  const size_t length =
      byte(8) + 256 * byte(9) + (wide ? 65536 * byte(10) + 16777216 * byte(11) : 0);
  if (start + length > data.size()) fail(path, ": its header is cut off");
  const std::string header = data.substr(start, length);
  const DType dtype = parse_descr(field(header, "descr", ",}", path), path);
  const bool fortran = field(header, "fortran_order", ",}", path).find("True") == 0;
  Sizes shape = parse_shape(field(header, "shape", ")", path), path);
  const size_t bytes = static_cast<size_t>(element_count(shape)) * size_of(dtype);
  if (data.size() - start - length < bytes)
    fail(path, ": holds fewer elements than its shape [", join(shape, ","), "] says");
  if (fortran) std::reverse(shape.begin(), shape.end());
  Tensor tensor = empty_tensor(dtype, shape);
  std::memcpy(tensor.bytes(), data.data() + start + length, bytes);
  if (!fortran) return tensor;
  Sizes strides = tensor.strides();
  std::reverse(shape.begin(), shape.end());
  std::reverse(strides.begin(), strides.end());
  return contiguous_copy(with_layout(tensor, shape, strides, 0));
}

void save_npy(const std::string& path, const Tensor& tensor) {
  const Tensor flat = tensor.is_contiguous() ? tensor : contiguous_copy(tensor);
  std::string descr = "<u2";  // bf16's bits
  for (const Row& row : kTypes) {
    if (row.dtype == tensor.dtype()) descr = row.descr;
  }
  std::string header = str("{'descr': '", descr, "', 'fortran_order': False, 'shape': (",
                           join(tensor.shape(), ", "), tensor.rank() == 1 ? ",), }" : "), }");
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::ofstream out(path, std::ios::binary);
  const char mark[] = {'\x93',
                       'N',
                       'U',
                       'M',
                       'P',
                       'Y',
                       1,
                       0,
                       static_cast<char>(header.size() & 255),
                       static_cast<char>(header.size() >> 8)};
  out.write(mark, sizeof mark);
  out << header;
  out.write(reinterpret_cast<const char*>(flat.bytes()),
            static_cast<std::streamsize>(flat.numel()) *
                static_cast<std::streamsize>(size_of(flat.dtype())));
  out.close();
  if (!out) fail("cannot write ", path);
}

}  // namespace tiny_compile
