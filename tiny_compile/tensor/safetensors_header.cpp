// What may a header say that a stranger wrote? Only what its grammar has, which nests to a fixed
// depth, and what is true of the bytes behind it:
//
//   {"w": {"dtype": "F32", "shape": [2,3], "data_offsets": [0,24]}}   =>   {w, f32, [2,3], 0, 24}
//
// The format: github.com/huggingface/safetensors; the grammar is a part of JSON's (RFC 8259).
#include "tiny_compile/tensor/safetensors_header.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include "tiny_compile/tensor/zip.h"

namespace tiny_compile {
namespace {

// "BF16": our names in capitals.
std::string name_in_file(DType dtype) {
  std::string text = name(dtype);
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string utf8_of(uint32_t code) {
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  std::string tail;
  uint32_t limit = 0x40;  // of what the first byte can hold
  for (; code >= limit; limit = limit == 0x40 ? 0x20 : limit / 2, code >>= 6)
    tail.insert(tail.begin(), static_cast<char>(0x80 | (code & 0x3F)));
  return static_cast<char>(~(2 * limit - 1) | code) + tail;
}

// What the format takes of JSON; every function reads on from where the last one stopped.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  [[noreturn]] void refuse(const std::string& why) const {
    fail(path_, ": byte ", at_, " of its header: ", why,
         "; the file is damaged or not of this format: save it again");
  }
  bool accept(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    at_++;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse(str("'", c, "' is missing"));
  }

  // Nothing but spaces is left.
  void end() {
    skip();
    if (at_ < text_.size()) refuse("something follows its object");
  }

  // Items between commas up to `close`.
  template <typename Item>
  void list(char close, Item item) {
    if (accept(close)) return;
    do item();
    while (accept(','));
    expect(close);
  }

  std::string string() {
    expect('"');
    std::string result;
    for (char c = next(); c != '"'; c = next()) {
      if (static_cast<unsigned char>(c) < 0x20) refuse("a string holds a control character");
      if (c == '\\')
        result += escaped();
      else
        result += c;
    }
    if (!is_utf8(result)) refuse("a string is no UTF-8");
    return result;
  }

  uint64_t number() {
    skip();
    uint64_t value = 0;
    const size_t begin = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; at_++) {
      value = value * 10 + static_cast<uint64_t>(text_[at_] - '0');
      if (value > (uint64_t{1} << 60)) refuse("a number is too large");
    }
    if (at_ == begin || (text_[begin] == '0' && at_ > begin + 1)) refuse("a number is none");
    return value;
  }

 private:
  void skip() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      at_++;
  }

  char next() {
    if (at_ == text_.size()) refuse("it is cut off");
    return text_[at_++];
  }

  std::string escaped() {
    const char c = next();
    const size_t place = std::string_view("\"\\/bfnrt").find(c);
    if (place != std::string_view::npos) return std::string(1, "\"\\/\b\f\n\r\t"[place]);
    if (c != 'u') refuse("an unknown escape");
    uint32_t code = hex();
    const bool is_high = code >= 0xD800 && code < 0xDC00;
    if (is_high && (next() != '\\' || next() != 'u')) refuse("half of a surrogate pair");
    if (is_high) {
      const uint32_t low = hex();
      if (low < 0xDC00 || low > 0xDFFF) refuse("half of a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    return utf8_of(code);  // a low surrogate alone becomes what is no UTF-8
  }

  uint32_t hex() {
    uint32_t code = 0;
    for (int k = 0; k < 4; k++) {
      const char digit = next();
      const size_t value =
          std::string_view("0123456789abcdef").find(digit | (digit > '9' ? 0x20 : 0));
      if (value == std::string_view::npos) refuse("an escape without four hexadecimal digits");
      code = 16 * code + static_cast<uint32_t>(value);
    }
    return code;
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
};

DType dtype_of_name(const HeaderReader& reader, const std::string& name) {
  for (int i = 0; i < kDTypeCount; i++) {
    if (name == name_in_file(static_cast<DType>(i))) return static_cast<DType>(i);
  }
  reader.refuse(str("element type '", name, "' is not one of ours"));
}

std::vector<uint64_t> read_numbers(HeaderReader& reader) {
  std::vector<uint64_t> result;
  reader.expect('[');
  reader.list(']', [&] { result.push_back(reader.number()); });
  if (result.size() > 64) reader.refuse("a shape of more than 64 axes");
  return result;
}

void skip_metadata(HeaderReader& reader) {
  reader.expect('{');
  reader.list('}', [&] {
    reader.string();
    reader.expect(':');
    reader.string();
  });
}

SafetensorsEntry read_entry(HeaderReader& reader, const std::string& name) {
  std::optional<DType> dtype;
  std::optional<std::vector<uint64_t>> shape, offsets;
  reader.expect('{');
  reader.list('}', [&] {
    const std::string key = reader.string();
    reader.expect(':');
    if (key == "dtype" && !dtype)
      dtype = dtype_of_name(reader, reader.string());
    else if (key == "shape" && !shape)
      shape = read_numbers(reader);
    else if (key == "data_offsets" && !offsets)
      offsets = read_numbers(reader);
    else
      reader.refuse(str("'", name, "' has '", key, "' twice, or no such entry is known"));
  });
  if (!dtype || !shape || !offsets || offsets->size() != 2)
    reader.refuse(str("'", name, "' lacks dtype, shape or two data_offsets"));
  return {name, *dtype, Sizes(shape->begin(), shape->end()), offsets->at(0), offsets->at(1)};
}

std::vector<SafetensorsEntry> read_entries(HeaderReader reader) {
  std::vector<SafetensorsEntry> entries;
  std::set<std::string> names;
  reader.expect('{');
  reader.list('}', [&] {
    const std::string name = reader.string();
    if (!names.insert(name).second) reader.refuse(str("'", name, "' stands in it twice"));
    reader.expect(':');
    if (name == "__metadata__") return skip_metadata(reader);
    entries.push_back(read_entry(reader, name));
  });
  reader.end();
  return entries;
}

uint64_t bytes_of_shape(const SafetensorsEntry& entry, const std::string& path) {
  try {
    return static_cast<uint64_t>(element_count(entry.shape)) * size_of(entry.dtype);
  } catch (const Error& error) {
    fail(path, ": '", entry.name, "': ", error.what());
  }
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      result += "\\u00";
      result += c < 0x10 ? '0' : '1';
      result += "0123456789abcdef"[c & 15];
      continue;
    }
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

}  // namespace

std::vector<SafetensorsEntry> parse_safetensors_header(std::string_view header,
                                                       const std::string& path) {
  std::vector<SafetensorsEntry> entries = read_entries({header, path});
  std::stable_sort(entries.begin(), entries.end(), [](const auto& lhs, const auto& rhs) {
    return std::pair(lhs.begin, lhs.end) < std::pair(rhs.begin, rhs.end);
  });
  uint64_t end = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != end || entry.end < entry.begin)
      fail(path, ": '", entry.name, "' has the bytes [", entry.begin, ",", entry.end,
           "), but the one before it ends at ", end,
           ": they overlap or leave a gap; the file is damaged: save it again");
    if (entry.end - entry.begin != bytes_of_shape(entry, path))
      fail(path, ": '", entry.name, "' has ", entry.end - entry.begin, " bytes, not the ",
           bytes_of_shape(entry, path), " of ", entry.dtype, "[", join(entry.shape, ","),
           "]; the file is damaged: save it again");
    end = entry.end;
  }
  return entries;
}

std::string safetensors_header(const std::vector<SafetensorsEntry>& entries) {
  std::string text = R"({"__metadata__":{"format":"pt"})";
  for (const SafetensorsEntry& entry : entries) {
    text += str(",", quoted(entry.name), R"(:{"dtype":")", name_in_file(entry.dtype),
                R"(","shape":[)", join(entry.shape, ","), R"(],"data_offsets":[)", entry.begin,
                ",", entry.end, "]}");
  }
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace tiny_compile
