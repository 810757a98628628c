// What is a .npy file? A mark, a version, a header that is a Python dictionary,
// and the elements:
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
  std::string text = header.substr(colon + 1, stop - colon - 1);
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  return text;
}

// "(2,3," => {2, 3}
Sizes parse_shape(const std::string& text, const std::string& path) {
  Sizes shape;
  int64_t number = -1;
  for (char c : text) {
    if (c >= '0' && c <= '9') {
      number = std::max<int64_t>(number, 0) * 10 + (c - '0');
      if (number > (int64_t{1} << 48)) fail(path, ": a size in ", text, ") is too large");
      continue;
    }
    if (c != '(' && c != ',') fail(path, ": its shape ", text, ") holds more than sizes");
    if (number >= 0) shape.push_back(number);
    number = -1;
  }
  if (number >= 0) shape.push_back(number);
  return shape;
}

DType parse_descr(const std::string& descr, const std::string& path) {
  for (const Row& row : kTypes) {
    if (descr == str("'", row.descr, "'")) return row.dtype;
  }
  fail(path, ": element type ", descr,
       " is not one of ours (little-endian floats and integers, bool)");
}

struct Header {
  DType dtype;
  bool fortran;
  Sizes shape;
  size_t end;  // where the elements start
};

Header parse_header(const std::string& data, const std::string& path) {
  if (data.size() < 12 || std::memcmp(data.data(), "\x93NUMPY", 6) != 0)
    fail(path, " is no .npy file");
  if (data[6] < 1 || data[6] > 3)
    fail(path, ": version ", int{data[6]}, " of the .npy format; we know 1 to 3");
  const bool wide = data[6] >= 2;
  auto byte = [&](size_t i) {
    return static_cast<size_t>(static_cast<unsigned char>(data[i]));
  };
  const size_t start = wide ? 12 : 10;
  const size_t length =
      byte(8) + 256 * byte(9) + (wide ? 65536 * byte(10) + 16777216 * byte(11) : 0);
  if (start + length > data.size()) fail(path, ": its header is cut off");
  const std::string text = data.substr(start, length);
  const std::string order = field(text, "fortran_order", ",}", path);
  if (order != "True" && order != "False")
    fail(path, ": its fortran_order is ", order, ", neither True nor False");
  return {parse_descr(field(text, "descr", ",}", path), path), order == "True",
          parse_shape(field(text, "shape", ")", path), path), start + length};
}

// Bytes of a file as elements: a C++ bool is 0 or 1, whatever the file says.
void copy_elements(DType dtype, const char* from, size_t bytes, std::byte* to) {
  std::memcpy(to, from, bytes);
  if (dtype != DType::boolean) return;
  for (size_t i = 0; i < bytes; i++) to[i] = std::byte{to[i] != std::byte{0}};
}

}  // namespace

Tensor load_npy(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail("cannot read ", path);
  std::ostringstream content;
  content << in.rdbuf();
  const std::string data = content.str();
  auto [dtype, fortran, shape, start] = parse_header(data, path);
  const size_t bytes = static_cast<size_t>(element_count(shape)) * size_of(dtype);
  if (data.size() - start < bytes)
    fail(path, ": holds fewer elements than its shape [", join(shape, ","), "] says");
  if (fortran) std::reverse(shape.begin(), shape.end());
  const Tensor tensor = empty_tensor(dtype, shape);
  copy_elements(dtype, data.data() + start, bytes, tensor.bytes());
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
  const char mark[] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0};
  out.write(mark, sizeof mark);
  out.put(static_cast<char>(header.size() & 255)).put(static_cast<char>(header.size() >> 8));
  out << header;
  out.write(reinterpret_cast<const char*>(flat.bytes()), flat.numel() * size_of(flat.dtype()));
  out.close();
  if (!out) fail("cannot write ", path);
}

}  // namespace tiny_compile
