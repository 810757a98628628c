#include "tiny_compile/tensor/npy.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/catch.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

struct TemporaryFile {
  std::filesystem::path folder;
  std::string path;

  TemporaryFile() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tc_npy_XXXXXX").string();
    if (!mkdtemp(pattern.data())) fail("no temporary folder ", pattern);
    folder = pattern;
    path = (folder / "x.npy").string();
  }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(const std::string& bytes) const { std::ofstream(path, std::ios::binary) << bytes; }
  std::string read() const {
    std::ostringstream content;
    content << std::ifstream(path, std::ios::binary).rdbuf();
    return content.str();
  }
};

// A file of version 1 (or 2, 3) with this header and these elements.
std::string file_of(const std::string& header, const std::string& elements, char version = 1) {
  std::string text = "\x93NUMPY";
  text += version;
  text += '\0';
  text += static_cast<char>(header.size() & 255);
  text += static_cast<char>(header.size() >> 8);
  if (version > 1) text += std::string(2, '\0');
  return text + header + elements;
}

std::string header_of(const std::string& descr, const std::string& shape,
                      const std::string& fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape +
         ", }\n";
}

std::string error_of(const std::string& bytes) {
  const TemporaryFile file;
  file.write(bytes);
  try {
    load_npy(file.path);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

const std::string kTwoFloats("\0\0\x80\x3f\0\0\0\x40", 8);  // 1, 2

}  // namespace

TEST_CASE("a tensor of any dtype and shape comes back from its file", "[npy]") {
  const TemporaryFile file;
  for (const DType dtype :
       {float32, float64, float16, int8, uint8, int32, int64, uint32, uint64, boolean}) {
    for (const Sizes& shape : {Sizes{}, Sizes{1}, Sizes{7}, Sizes{2, 3}, Sizes{0},
                               Sizes{3, 0, 2}, Sizes{2, 1, 3, 1}}) {
      INFO(dtype << "[" << join(shape, ",") << "]");
      const Tensor x = empty_tensor(dtype, shape);
      const size_t bytes = static_cast<size_t>(x.numel()) * size_of(dtype);
      for (size_t i = 0; i < bytes; i++)
        x.bytes()[i] = std::byte(dtype == boolean ? i % 2 : i * 37 + 11);
      save_npy(file.path, x);
      CHECK(same_bits(load_npy(file.path), x));
    }
  }
}

TEST_CASE("infinities, NaN and -0 come back", "[npy]") {
  const TemporaryFile file;
  const Tensor x = from_vector<float>({INFINITY, -INFINITY, NAN, -0.0f, 1e-45f});
  save_npy(file.path, x);
  CHECK(same_bits(load_npy(file.path), x));
}

TEST_CASE("a view is written row-major", "[npy]") {
  const TemporaryFile file;
  const Tensor x = from_vector<int32_t>({1, 2, 3, 4, 5, 6}, Sizes{2, 3});
  save_npy(file.path, with_layout(x, {3, 2}, {-1, 3}, 2));
  const Tensor back = load_npy(file.path);
  CHECK(back.to_vector<int32_t>() == std::vector<int32_t>{3, 6, 2, 5, 1, 4});
  CHECK(back.is_contiguous());
}

TEST_CASE("the file is what NumPy writes", "[npy]") {
  const TemporaryFile file;
  save_npy(file.path, from_vector<float>({1, 2}));
  const std::string text = file.read();
  CHECK(text.substr(0, 8) == std::string("\x93NUMPY\1\0", 8));
  CHECK((text.size() - 8) % 64 == 0);
  CHECK_THAT(text, ContainsSubstring("{'descr': '<f4', 'fortran_order': False, "
                                     "'shape': (2,), }"));
  CHECK(text.substr(text.size() - 9) == "\n" + kTwoFloats);
}

TEST_CASE("bf16 is written as the u2 of its bits", "[npy]") {
  const TemporaryFile file;
  save_npy(file.path, filled_tensor(Literal::of(bfloat16, 1), {2}));
  const std::string text = file.read();
  CHECK_THAT(text, ContainsSubstring("'<u2'"));
  CHECK(text.substr(text.size() - 4) == "\x80\x3f\x80\x3f");
  CHECK_THROWS_WITH(load_npy(file.path), ContainsSubstring("element type '<u2'"));
}

TEST_CASE("versions 2 and 3 and Fortran order are read", "[npy]") {
  const TemporaryFile file;
  for (const char version : {1, 2, 3}) {
    file.write(file_of(header_of("<f4", "(2,)"), kTwoFloats, version));
    CHECK(load_npy(file.path).to_vector<float>() == std::vector<float>{1, 2});
  }
  file.write(file_of(header_of("|u1", "(2, 3)", "True"), "\1\2\3\4\5\6"));
  const Tensor columns = load_npy(file.path);
  CHECK(columns.shape() == Sizes{2, 3});
  CHECK(columns.to_vector<int>() == std::vector<int>{1, 3, 5, 2, 4, 6});
  CHECK(columns.is_contiguous());
}

TEST_CASE("a bool is 0 or 1 whatever the file says", "[npy]") {
  const TemporaryFile file;
  file.write(file_of(header_of("|b1", "(4,)"), std::string("\0\1\2\xff", 4)));
  const Tensor x = load_npy(file.path);
  CHECK(x.to_vector<int>() == std::vector<int>{0, 1, 1, 1});
  CHECK(x.bytes()[3] == std::byte{1});
}

TEST_CASE("a file that is none, or is cut off anywhere, is an error", "[npy]") {
  const std::string good = file_of(header_of("<f4", "(2,)"), kTwoFloats);
  CHECK(error_of(good) == "no error");
  for (size_t length = 0; length < good.size(); length++) {
    CAPTURE(length);
    CHECK_THAT(error_of(good.substr(0, length)), ContainsSubstring("x.npy"));
  }
  CHECK_THAT(error_of("P6 1 1 255 not a tensor"), ContainsSubstring("no .npy file"));
  CHECK_THAT(error_of("\x92" + good.substr(1)), ContainsSubstring("no .npy file"));
  CHECK_THROWS_AS(load_npy("/nonexistent/x.npy"), Error);
  CHECK_THROWS_AS(load_npy("/"), Error);
  CHECK_THROWS_AS(save_npy("/nonexistent/x.npy", empty_tensor(float32, {1})), Error);
}

TEST_CASE("any one byte of the header may be wrong without a crash", "[npy]") {
  const TemporaryFile file;
  const std::string good = file_of(header_of("<f4", "(2,)"), kTwoFloats);
  for (size_t i = 0; i < good.size() - kTwoFloats.size(); i++) {
    for (const char wrong : {'\0', '9', '-'}) {
      std::string text = good;
      text[i] = wrong;
      file.write(text);
      try {
        const Tensor x = load_npy(file.path);
        CHECK(x.numel() <= 8);
      } catch (const Error&) {
        SUCCEED();
      }
    }
  }
}

TEST_CASE("versions, dtypes and orders we do not know are errors", "[npy]") {
  for (const char version : {0, 4, 127, -1})
    CHECK_THAT(error_of(file_of(header_of("<f4", "(2,)"), kTwoFloats, version)),
               ContainsSubstring("version"));
  for (const char* descr : {">f4", "<c8", "<f16", "<U2", "|O", "<i2", "|V4", "", "<M8[ns]"})
    CHECK_THAT(error_of(file_of(header_of(descr, "(2,)"), kTwoFloats)),
               ContainsSubstring("is not one of ours"));
  CHECK_THAT(error_of(file_of(header_of("<f4", "(2,)", "Maybe"), kTwoFloats)),
             ContainsSubstring("fortran_order"));
  CHECK_THAT(error_of(file_of("{'descr': [('a', '<f4'), ('b', '<f4')], 'fortran_order': "
                              "False, 'shape': (1,), }\n",
                              kTwoFloats)),
             ContainsSubstring("is not one of ours"));
  CHECK_THAT(error_of(file_of("{'descr': '<f4'}", kTwoFloats)),
             ContainsSubstring("lacks 'fortran_order'"));
}

TEST_CASE("a header that Python would not read so is an error", "[npy]") {
  const std::string elements(64, '\0');
  for (const char* shape : {"(2 3)", "(2)", "(2,,3)", "(,)", "(2,3", "(2;3)", "((2,3))",
                            "[2,3]", "2,", "(+2,)", "(2, 3) 4"}) {
    CAPTURE(shape);
    CHECK_THAT(error_of(file_of(header_of("<f4", shape), elements)),
               ContainsSubstring("its header is not one that NumPy wrote"));
  }
  const std::string rest = "'fortran_order': False, 'shape': (2,), }\n";
  for (const std::string& header : std::vector<std::string>{
           "{'descr': '<f4', 'descr': '<f8', " + rest, "{'descr': '<f4' " + rest,
           "{'descr' '<f4', " + rest, "{'descr': '<f4, " + rest, "{'descr': <f4, " + rest,
           "'descr': '<f4', " + rest, "{'descr': '<f4', 'x': 1, " + rest,
           "{'xdescr': '<f4', " + rest, "{'descr': '<f4', " + rest + "more",
           "{'descr': '<f4', 'fortran_order': Falsehood, 'shape': (2,), }\n",
           "{'note': \"'descr': '<f4'\", " + rest, "{", " "}) {
    CAPTURE(header);
    CHECK(error_of(file_of(header, elements)) != "no error");
  }
  for (const std::string& header :
       {header_of("<f4", "(2, 3)"), header_of("<f4", "( 2 ,3, )"), "{\"descr\":\"<f4\"," + rest,
        "{ 'shape': (2,), 'descr' : '<f4', 'fortran_order': "
        "True}" +
            std::string(20, ' ') + "\n"}) {
    CAPTURE(header);
    CHECK(error_of(file_of(header, elements)) == "no error");
  }
}

TEST_CASE("what has no end, or no elements, is refused at once", "[npy]") {
  for (const char* path : {"/dev/zero", "/dev/null", "/dev/full", "/proc"})
    CHECK_THROWS_WITH(load_npy(path), ContainsSubstring(std::string("cannot read ") + path));
  std::string endless = file_of("", "", 2);
  endless.replace(8, 4, "\xff\xff\xff\xff");
  CHECK_THAT(error_of(endless), ContainsSubstring("cut off"));
}

TEST_CASE("a pipe is read as far as its elements go", "[npy]") {
  const TemporaryFile file;
  REQUIRE(mkfifo(file.path.c_str(), 0600) == 0);
  std::thread writer([&] {
    std::ofstream out(file.path, std::ios::binary);
    out << file_of(header_of("<f4", "(2,)"), kTwoFloats) << std::string(1000, 'x');
  });
  const Tensor x = load_npy(file.path);
  writer.join();
  CHECK(x.to_vector<float>() == std::vector<float>{1, 2});
}

TEST_CASE("impossible shapes are errors", "[npy]") {
  const std::string wide = "281474976710656";  // 2^48
  for (const std::string& shape :
       {"(" + wide + ", " + wide + ")", "(0, " + wide + ", " + wide + ")", "(" + wide + ",)",
        std::string("(99999999999999999999999,)"), std::string("(3,)"), std::string("(-2,)"),
        std::string("(2.0,)"), std::string("(2L,)"), std::string("(a,)"), std::string("(2,"),
        std::string("2")}) {
    CAPTURE(shape);
    CHECK(error_of(file_of(header_of("<f4", shape), kTwoFloats)) != "no error");
  }
  CHECK(error_of(file_of(header_of("<f4", "(0, 5)"), "")) == "no error");
  CHECK(error_of(file_of(header_of("<f4", "()"), kTwoFloats)) == "no error");
}
