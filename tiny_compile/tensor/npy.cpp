// What is a .npy file? A mark, a version, a header that is a Python dictionary,
// and the elements:
//   \x93NUMPY 1 0 <length> {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
#include "tiny_compile/tensor/npy.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "tiny_compile/base/input_file.h"
#include "tiny_compile/base/output_file.h"

namespace tiny_compile {
namespace {

constexpr size_t kMostHeader = size_t{1} << 20;

// "<f4" of f32, "|b1" of bool. NumPy has no bf16: its bits are "<u2".
std::string descr_of(DType dtype) {
  if (dtype == DType::bf16) return "<u2";
  const char* kinds = "buif";
  return str(size_of(dtype) == 1 ? '|' : '<', kinds[static_cast<int>(category(dtype))],
             size_of(dtype));
}

DType parse_descr(std::string_view descr, const std::string& path) {
  for (int i = 0; i < kDTypeCount; i++) {
    const DType dtype = static_cast<DType>(i);
    if (dtype != DType::bf16 && descr == descr_of(dtype)) return dtype;
  }
  fail(path, ": element type '", descr,
       "' is not one of ours (little-endian floats and integers, bool)");
}

struct Header {
  std::optional<std::string_view> descr;
  std::optional<bool> fortran;
  std::optional<Sizes> shape;
};

// {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }: a Python dictionary of these
// three, each once, and nothing behind it but blanks.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& path) : rest_(text), path_(path) {}

  Header parse() {
    expect('{');
    while (!accept('}')) {
      parse_entry();
      if (!accept(',') && !peek('}')) expect('}');
    }
    skip();
    if (!rest_.empty()) refuse("something follows its dictionary");
    for (const auto& [known, key] : {std::pair(header_.descr.has_value(), "descr"),
                                     std::pair(header_.fortran.has_value(), "fortran_order"),
                                     std::pair(header_.shape.has_value(), "shape")})
      if (!known) refuse(str("it lacks '", key, "'"));
    return header_;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    fail(path_, ": its header is not one that NumPy wrote: ", why);
  }
  void skip() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  bool peek(char c) {
    skip();
    return !rest_.empty() && rest_[0] == c;
  }
  bool accept(char c) {
    if (!peek(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse(str("'", c, "' is missing before '", rest_.substr(0, 20), "'"));
  }

  std::string_view quoted() {
    const char quote = peek('"') ? '"' : '\'';
    expect(quote);
    const size_t end = rest_.find(quote);
    if (end == std::string_view::npos) refuse("a quotation does not end");
    const std::string_view result = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return result;
  }

  template <typename T>
  void set(std::optional<T>& entry, T value, std::string_view key) const {
    if (entry) refuse(str("'", key, "' stands there twice"));
    entry = std::move(value);
  }

  void parse_entry() {
    const std::string_view key = quoted();
    expect(':');
    if (key == "descr" && peek('[')) fail(path_, ": a structured type is not one of ours");
    if (key == "descr") return set(header_.descr, quoted(), key);
    if (key == "fortran_order") return set(header_.fortran, truth(), key);
    if (key == "shape") return set(header_.shape, sizes(), key);
    refuse(str("no entry is called '", key, "'"));
  }

  bool truth() {
    skip();
    for (const std::string_view word : {"True", "False"}) {
      if (rest_.substr(0, word.size()) != word) continue;
      rest_.remove_prefix(word.size());
      return word == "True";
    }
    refuse("its fortran_order is neither True nor False");
  }

  // "()", "(2,)", "(2, 3)"; "(2)" is a number in Python, and "(2 3)" nothing.
  Sizes sizes() {
    Sizes result;
    expect('(');
    while (!accept(')')) {
      result.push_back(size());
      if (result.size() == 1 || !peek(')')) expect(',');
    }
    return result;
  }

  int64_t size() {
    skip();
    int64_t number = 0;
    size_t digits = 0;
    for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; digits++) {
      number = number * 10 + (rest_[digits] - '0');
      if (number > (int64_t{1} << 48)) refuse("a size in its shape is too large");
    }
    if (digits == 0) refuse("its shape holds more than sizes");
    rest_.remove_prefix(digits);
    return number;
  }

  std::string_view rest_;
  const std::string& path_;
  Header header_;
};

// The dictionary's text, which stands behind its length.
std::string header_text(const NextBytes& read, const std::string& path) {
  const std::string mark = read(8);
  if (mark.size() < 8 || mark.compare(0, 6, "\x93NUMPY") != 0) fail(path, " is no .npy file");
  if (mark[6] < 1 || mark[6] > 3)
    fail(path, ": version ", int{mark[6]}, " of the .npy format; we know 1 to 3");
  const std::string digits = read(mark[6] >= 2 ? 4 : 2);
  size_t length = 0;
  for (size_t k = digits.size(); k-- > 0;)
    length = 256 * length + static_cast<unsigned char>(digits[k]);
  const std::string text = read(std::min(length, kMostHeader));
  if (digits.size() < 2 || text.size() < length)
    fail(path, ": its header is cut off, or longer than ", kMostHeader, " bytes");
  return text;
}

// Bytes of a file as elements: a C++ bool is 0 or 1, whatever the file says.
void copy_elements(DType dtype, const char* from, size_t bytes, std::byte* to) {
  std::memcpy(to, from, bytes);
  if (dtype != DType::boolean) return;
  for (size_t i = 0; i < bytes; i++) to[i] = std::byte{to[i] != std::byte{0}};
}

}  // namespace

Tensor read_npy(const NextBytes& read, const std::string& path) {
  const std::string text = header_text(read, path);
  const Header header = HeaderParser(text, path).parse();
  const DType dtype = parse_descr(*header.descr, path);
  Sizes shape = *header.shape;
  const size_t bytes = static_cast<size_t>(element_count(shape)) * size_of(dtype);
  const std::string data = read(bytes);
  if (data.size() < bytes)
    fail(path, ": holds fewer elements than its shape [", join(shape, ","), "] says");
  const bool fortran = *header.fortran;
  if (fortran) std::reverse(shape.begin(), shape.end());
  const Tensor tensor = empty_tensor(dtype, shape);
  copy_elements(dtype, data.data(), bytes, tensor.bytes());
  if (!fortran) return tensor;
  Sizes strides = tensor.strides();
  std::reverse(shape.begin(), shape.end());
  std::reverse(strides.begin(), strides.end());
  return contiguous_copy(with_layout(tensor, shape, strides, 0));
}

Tensor load_npy(const std::string& path) {
  InputFile in(path);
  return read_npy([&](size_t bytes) { return in.read(bytes); }, path);
}

std::string npy_header(const Tensor& tensor) {
  std::string header =
      str("{'descr': '", descr_of(tensor.dtype()), "', 'fortran_order': False, 'shape': (",
          join(tensor.shape(), ", "), tensor.rank() == 1 ? ",), }" : "), }");
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  const char size[] = {static_cast<char>(header.size() & 255),
                       static_cast<char>(header.size() >> 8)};
  return std::string("\x93NUMPY\1\0", 8) + std::string(size, 2) + header;
}

void save_npy(const std::string& path, const Tensor& tensor) {
  const Tensor flat = on_host(tensor.is_contiguous() ? tensor : contiguous_copy(tensor));
  write_whole(path, {npy_header(flat), bytes_of(flat)});
}

std::string_view bytes_of(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.bytes()),
          static_cast<size_t>(tensor.numel()) * size_of(tensor.dtype())};
}

}  // namespace tiny_compile
