// .safetensors and .npz: what comes back, what NumPy and PyTorch read, and what hostile files say.
#include "tiny_compile/tensor/named_tensors.h"

#include <cmath>
#include <random>

#include "tests/catch.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/runtime/cpp_toolchain.h"
#include "tiny_compile/runtime/process.h"
#include "tiny_compile/tensor/npy.h"
#include "tiny_compile/tensor/safetensors_header.h"
#include "tiny_compile/tensor/zip.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr DType kAll[] = {float32, float64, float16, bfloat16, int8,   uint8,
                          int32,   int64,   uint32,  uint64,   boolean};

NamedTensors every_type(bool with_bf16) {
  NamedTensors tensors;
  for (const DType dtype : kAll) {
    if (dtype == bfloat16 && !with_bf16) continue;
    for (const Sizes& shape : {Sizes{}, Sizes{7}, Sizes{2, 3}, Sizes{0, 4}})
      tensors[str(dtype, ".", shape.size(), ".", element_count(shape))] =
          filled_tensor(Literal::of(dtype, 1), shape);
  }
  tensors["x\"\\/\n\u00e9\U0001F600"] = from_vector<float>({-0.0f, HUGE_VALF, 1e-45f});
  tensors["transposed"] =
      with_layout(from_vector<int32_t>({1, 2, 3, 4, 5, 6}), {3, 2}, {-1, 3}, 2);
  return tensors;
}

void check_same(const NamedTensors& found, const NamedTensors& wanted) {
  REQUIRE(found.size() == wanted.size());
  for (const auto& [name, tensor] : wanted) {
    INFO(name);
    REQUIRE(found.contains(name));
    CHECK(same_bits(found.at(name), tensor));
  }
}

// A .safetensors file of this header and so many bytes.
std::string safe_file(const std::string& header, size_t bytes) {
  std::string text;
  for (int k = 0; k < 8; k++) text += static_cast<char>(header.size() >> (8 * k));
  return text + header + std::string(bytes, '\1');
}

std::string refusal(const std::string& ending, const std::string& bytes) {
  const Scratch scratch;
  const std::string path = scratch.path("w" + ending);
  write_text(path, bytes);
  const std::string message = message_of([&] { load_tensors(path); });
  CHECK((message == "no error" || message.find(path) != std::string::npos));
  return message;
}

std::string safe_refusal(const std::string& header, size_t bytes = 8) {
  return refusal(".safetensors", safe_file(header, bytes));
}

std::string one_entry(const std::string& dtype, const std::string& shape,
                      const std::string& offsets) {
  return R"({"w":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
         offsets + "}}";
}

// An archive of these arrays.
std::string zipped(const std::vector<std::pair<std::string, std::string>>& entries,
                   uint64_t wide_from = 0xFFFFFFFF) {
  std::vector<ZipEntry> parts;
  for (const auto& [name, bytes] : entries) parts.push_back({name, {bytes}});
  std::vector<std::string> frame;
  std::string archive;
  for (const std::string_view piece : zip_pieces(parts, frame, wide_from)) archive += piece;
  return archive;
}

std::string array_file(const Tensor& tensor) {
  return npy_header(tensor) + std::string(bytes_of(tensor));
}

std::string replaced(std::string text, const std::string& old, const std::string& by) {
  for (size_t at = 0; (at = text.find(old, at)) != std::string::npos; at += by.size())
    text.replace(at, old.size(), by);
  return text;
}

// Loads what is left of good files after random changes: a result or a tc::Error, nothing else.
void load_mutants(const std::string& ending, const std::string& good, int count) {
  const Scratch scratch;
  const std::string path = scratch.path("w" + ending);
  std::mt19937_64 random(7);
  int refused = 0;
  for (int turn = 0; turn < count; turn++) {
    std::string bytes = good;
    for (uint64_t change = 0; change <= random() % 3; change++) {
      const size_t at = random() % bytes.size();
      switch (random() % 5) {
        case 0: bytes[at] = static_cast<char>(random()); break;
        case 1: bytes.resize(at + 1); break;
        case 2: bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 40)); break;
        case 3: bytes[at] = static_cast<char>(0xFF); break;
        default: bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8)); break;
      }
    }
    write_text(path, bytes);
    try {
      load_tensors(path, {.allow_nan = true});
    } catch (const Error& error) {
      refused++;
      REQUIRE(std::string(error.what()).find(path) != std::string::npos);
    }
  }
  CHECK(refused > count / 2);
}

}  // namespace

TEST_CASE("tensors of every dtype come back by name", "[named_tensors]") {
  const Scratch scratch;
  for (const char* name : {"w.safetensors", "w.npz"}) {
    const NamedTensors tensors = every_type(std::string(name) == "w.safetensors");
    save_tensors(scratch.path(name), tensors);
    check_same(load_tensors(scratch.path(name)), tensors);
    save_tensors(scratch.path(name), {});
    check_same(load_tensors(scratch.path(name)), {});
  }
  CHECK_THROWS_WITH(save_tensors(scratch.path("w.pt"), {}),
                    ContainsSubstring(".safetensors or .npz"));
  CHECK_THROWS_WITH(load_tensors(scratch.path("w.pt")),
                    ContainsSubstring(".safetensors or .npz"));
  CHECK_THROWS_WITH(
      save_npz(scratch.path("b.npz"), {{"b", filled_tensor(Literal::of(bfloat16, 1), {2})}}),
      ContainsSubstring("no bf16") && ContainsSubstring("'b'"));
  CHECK_THROWS_WITH(
      save_safetensors(scratch.path("w.safetensors"), {{"\xff", empty_tensor(float32, {1})}}),
      ContainsSubstring("must not be called"));
}

TEST_CASE("a file of safetensors is laid out as its format says", "[named_tensors]") {
  const Scratch scratch;
  const std::string path = scratch.path("w.safetensors");
  save_safetensors(path, {{"a", from_vector<int8_t>({5})}, {"b", from_vector<float>({1, 2})}});
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
      R"("a":{"dtype":"I8","shape":[1],"data_offsets":[8,9]}})";
  const std::string text = text_of(path);
  CHECK(text.substr(8, header.size()) == header);
  CHECK(static_cast<unsigned char>(text[0]) % 8 == 0);
  CHECK(text.substr(text.size() - 9) == std::string("\0\0\x80\x3f\0\0\0\x40\5", 9));
}

TEST_CASE("NaN in a file is an error with its place, unless allowed", "[named_tensors]") {
  const Scratch scratch;
  for (const char* name : {"w.safetensors", "w.npz"}) {
    const std::string path = scratch.path(name);
    for (const DType dtype : {float32, float64, float16}) {
      const Tensor tensor = filled_tensor(Literal::of(dtype, -INFINITY), {2, 3});
      save_tensors(path, {{"a", tensor}});
      CHECK(load_tensors(path).at("a").numel() == 6);
      const Literal nan = Literal::of(dtype, NAN);
      std::memcpy(tensor.bytes() + 5 * size_of(dtype), &nan.bits, size_of(dtype));
      save_tensors(path, {{"a", tensor}});
      CHECK_THROWS_WITH(load_tensors(path), ContainsSubstring("NaN in 'a' at [1,2]") &&
                                                ContainsSubstring("allow_nan"));
      CHECK(same_bits(load_tensors(path, {.allow_nan = true}).at("a"), tensor));
    }
  }
  const NamedTensors bf16 = {{"b", filled_tensor(Literal::of(bfloat16, NAN), {1})}};
  CHECK_THROWS_WITH(check_no_nan(bf16, "f"), ContainsSubstring("f: NaN in 'b' at [0]"));
}

TEST_CASE("a header of safetensors that is not true or not JSON is refused",
          "[named_tensors]") {
  CHECK(safe_refusal(one_entry("F32", "[2]", "[0,8]")) == "no error");
  CHECK(safe_refusal(
            " { \"w\" : {\"shape\":[],\"dtype\":\"I64\",\"data_offsets\": [ 0 , 8 ]} }  ") ==
        "no error");
  CHECK(safe_refusal(one_entry("F32", "[0,5]", "[0,0]"), 0) == "no error");
  const std::pair<const char*, const char*> cases[] = {
      {"", "'{' is missing"},
      {"[]", "'{' is missing"},
      {"{\"w\":1}", "'{' is missing"},
      {"{\"w", "cut off"},
      {"{\"w\":{}}", "lacks dtype"},
      {"{} x", "something follows"},
      {R"({"__metadata__":{"a":1}})", "'\"' is missing"},
      {R"({"__metadata__":{"a":{"a":{"a":{}}}}})", "'\"' is missing"},
      {"{\"\\x\":{}}", "unknown escape"},
      {"{\"\\ud800\":{}}", "surrogate"},
      {"{\"\\udc00\":{}}", "no UTF-8"},
      {"{\"\xff\":{}}", "no UTF-8"},
      {"{\"\xc0\x80\":{}}", "no UTF-8"},
      {"{\"a\nb\":{}}", "control character"},
  };
  for (const auto& [header, why] : cases) {
    INFO(header);
    CHECK_THAT(safe_refusal(header), ContainsSubstring(why));
  }
  CHECK_THAT(safe_refusal(one_entry("F33", "[2]", "[0,8]")), ContainsSubstring("'F33'"));
  CHECK_THAT(safe_refusal(one_entry("F32", "[-2]", "[0,8]")),
             ContainsSubstring("a number is none"));
  CHECK_THAT(safe_refusal(one_entry("F32", "[02]", "[0,8]")),
             ContainsSubstring("a number is none"));
  CHECK_THAT(safe_refusal(one_entry("F32", "[2.0]", "[0,8]")),
             ContainsSubstring("']' is missing"));
  CHECK_THAT(safe_refusal(one_entry("F32", "[2]", "[-8,0]")),
             ContainsSubstring("a number is none"));
  CHECK_THAT(safe_refusal(one_entry("F32", "[2]", "[8,0]")),
             ContainsSubstring("overlap or leave a gap"));
  CHECK_THAT(safe_refusal(one_entry("F32", "[2]", "[0,8,9]")),
             ContainsSubstring("two data_offsets"));
  CHECK_THAT(safe_refusal(one_entry("F32", "[3]", "[0,8]")),
             ContainsSubstring("not the 12 of f32[3]"));
  CHECK_THAT(safe_refusal(one_entry("F32", "[2]", "[0,8]"), 9),
             ContainsSubstring("bytes follow"));
  CHECK_THAT(safe_refusal(one_entry("F32", "[2]", "[0,8]"), 7),
             ContainsSubstring("cut off in 'w': 7 of 8"));
  CHECK_THAT(safe_refusal(one_entry("F32", "[4294967296,4294967296]", "[0,8]")),
             ContainsSubstring("too many elements"));
  CHECK_THAT(safe_refusal(one_entry("F32", "[99999999999999999999]", "[0,8]")),
             ContainsSubstring("too large"));
  CHECK_THAT(safe_refusal(one_entry("U8", "[1152921504606846976]", "[0,1152921504606846976]")),
             ContainsSubstring("cut off in 'w'"));
  const std::string two = one_entry("F32", "[1]", "[0,4]"),
                    twice = two.substr(0, two.size() - 1);
  CHECK_THAT(safe_refusal(twice + "," + two.substr(1)),
             ContainsSubstring("'w' stands in it twice"));
  const std::string other = replaced(two.substr(1), "\"w\"", "\"v\"");
  CHECK_THAT(safe_refusal(twice + "," + other), ContainsSubstring("overlap"));
  CHECK_THAT(safe_refusal(twice + "," + replaced(other, "[0,4]", "[5,9]"), 9),
             ContainsSubstring("gap"));
  CHECK_THAT(safe_refusal(std::string(100'000, '[')), ContainsSubstring("'{' is missing"));
  CHECK_THAT(refusal(".safetensors", "short"), ContainsSubstring("no .safetensors file"));
  CHECK_THAT(refusal(".safetensors", std::string(20, '\xff')),
             ContainsSubstring("no .safetensors file"));
  CHECK_THAT(refusal(".safetensors", std::string("\x40\x42\x0f\0\0\0\0\0{}", 10)),
             ContainsSubstring("header is cut off: 2 of 1000000"));
}

TEST_CASE("names survive JSON's escapes", "[named_tensors]") {
  const auto entry = [](const std::string& name) {
    return parse_safetensors_header(
               "{\"" + name + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", "f")[0]
        .name;
  };
  CHECK(entry("\\u0041\\n\\t\\/\\\\\\\"") == "A\n\t/\\\"");
  CHECK(entry("\\u00e9\\u20AC") == "\u00e9\u20ac");
  CHECK(entry("\\ud83d\\ude00") == "\U0001F600");
}

TEST_CASE("an archive with zip64 fields is read as one without", "[named_tensors]") {
  const Scratch scratch;
  const Tensor tensor = from_vector<float>({1, 2, 3});
  const std::string path = scratch.path("w.npz");
  for (const uint64_t wide_from :
       {uint64_t{0}, uint64_t{100}, uint64_t{200}, uint64_t{0xFFFFFFFF}}) {
    write_text(path,
               zipped({{"a.npy", array_file(tensor)}, {"b/\u00e9.npy", array_file(tensor)}},
                      wide_from));
    check_same(load_npz(path), {{"a", tensor}, {"b/\u00e9", tensor}});
  }
}

TEST_CASE("an archive that is compressed, damaged or contradicts itself is refused",
          "[named_tensors]") {
  const std::string array = array_file(from_vector<float>({1, 2, 3}));
  const std::string good = zipped({{"a.npy", array}, {"b.npy", array}});
  const auto says = [&](const std::string& bytes) { return refusal(".npz", bytes); };
  CHECK(says(good) == "no error");
  CHECK_THAT(says(""), ContainsSubstring("cut off"));
  CHECK_THAT(says(std::string(3000, 'x')), ContainsSubstring("directory is missing"));
  CHECK_THAT(says(good.substr(0, good.size() - 1)), ContainsSubstring("directory is missing"));
  CHECK_THAT(says(good + "x"), ContainsSubstring("directory is missing"));
  CHECK_THAT(says(zipped({{"a.npy", array}, {"a.npy", array}})),
             ContainsSubstring("'a.npy' stands in it twice"));
  CHECK_THAT(says(zipped({{"a.txt", array}})), ContainsSubstring("'a.txt' is no array"));
  CHECK_THAT(says(zipped({{"a.npy", array + "x"}})),
             ContainsSubstring("1 bytes more than its array"));
  CHECK_THAT(says(zipped({{"a.npy", "x"}})), ContainsSubstring("'a.npy' is no .npy file"));
  CHECK_THAT(says(zipped({{"\xff.npy", array}})), ContainsSubstring("no UTF-8"));
  const size_t row = good.find("PK\1\2"), second = good.find("PK\1\2", row + 1),
               end = good.find("PK\5\6");
  const auto with = [&](size_t at, const std::string& bytes) {
    std::string changed = good;
    return changed.replace(at, bytes.size(), bytes);
  };
  CHECK_THAT(says(with(row + 10, "\10")),
             ContainsSubstring("'a.npy' is compressed (method 8); write it with np.savez,"));
  CHECK_THAT(says(with(row + 8, "\1")), ContainsSubstring("encrypted"));
  CHECK_THAT(says(with(row + 16, "x")), ContainsSubstring("checksum"));
  CHECK_THAT(says(with(60, "x")), ContainsSubstring("checksum"));
  CHECK_THAT(says(with(row + 20, "x")), ContainsSubstring("two sizes"));
  CHECK_THAT(says(with(second + 42, std::string(4, '\0'))), ContainsSubstring("another name"));
  CHECK_THAT(says(with(second + 42, "\xff\xff")),
             ContainsSubstring("not where the directory says"));
  CHECK_THAT(says(with(30, "c")), ContainsSubstring("another name"));
  CHECK_THAT(says(with(end + 10, "\xff\xff")), ContainsSubstring("too short"));
  CHECK_THAT(says(with(end + 10, "\1")), ContainsSubstring("longer than its entries"));
  CHECK_THAT(says(with(end + 16, "x")), ContainsSubstring("not where its end says"));
  CHECK_THAT(says(with(end + 4, "\1")), ContainsSubstring("one of several parts"));
  const std::string same = zipped({{"a.npy", array}, {"a.npx", array}});
  std::string overlap = replaced(same, "a.npx", "a.npy");
  const size_t last = overlap.rfind("PK\1\2");
  overlap.replace(last + 42, 4, std::string(4, '\0'));
  CHECK_THAT(says(overlap), ContainsSubstring("stands in it twice"));
}

TEST_CASE("mutated files of weights are read or refused", "[named_tensors]") {
  const Scratch scratch;
  const NamedTensors tensors = {{"a", from_vector<float>({1, 2, 3})},
                                {"layers.0.weight", from_vector<int64_t>({1, 2}, {1, 2})},
                                {"flag", from_vector<bool>({true, false})}};
  for (const char* ending : {".safetensors", ".npz"}) {
    const std::string path = scratch.path(std::string("good") + ending);
    save_tensors(path, tensors);
    load_mutants(ending, text_of(path), 3000);
  }
  load_mutants(".npz", zipped({{"a.npy", array_file(tensors.at("a"))}}, 0), 2000);
}

TEST_CASE("NumPy reads our archives and we read NumPy's", "[named_tensors]") {
  if (find_program("python3").empty()) SKIP("no python3");
  const Scratch scratch;
  NamedTensors tensors = every_type(false);
  tensors.erase("x\"\\/\n\u00e9\U0001F600");
  tensors["b.\u00e9"] = from_vector<float>({-0.0f, HUGE_VALF});
  save_npz(scratch.path("ours.npz"), tensors);
  const std::string array = array_file(from_vector<float>({1, 2, 3}));
  write_text(scratch.path("wide.npz"), zipped({{"a.npy", array}, {"b.npy", array}}, 0));
  write_text(scratch.path("check.py"), R"(import sys
try: import numpy as np
except ImportError: sys.exit(77)
import zipfile
folder = sys.argv[1]
assert zipfile.ZipFile(folder + "/ours.npz").testzip() is None
ours = dict(np.load(folder + "/ours.npz"))
np.savez(folder + "/theirs.npz", **ours)
np.savez_compressed(folder + "/small.npz", **ours)
with open(folder + "/stream.npz", "wb") as out:
    class Pipe:  # that cannot seek: sizes stand behind the entries
        def write(self, data): return out.write(data)
        def flush(self): out.flush()
        def read(self): raise OSError
    np.savez(Pipe(), **ours)
wide = np.load(folder + "/wide.npz")
assert wide["a"].tolist() == wide["b"].tolist() == [1, 2, 3]
)");
  const auto result =
      run_process({"python3", scratch.path("check.py"), scratch.path("")}, "", 60);
  if (result.exit_code == 77) SKIP("no numpy");
  INFO(result.output);
  REQUIRE(result.exit_code == 0);
  check_same(load_npz(scratch.path("theirs.npz")), tensors);
  check_same(load_npz(scratch.path("stream.npz")), tensors);
  CHECK_THROWS_WITH(load_npz(scratch.path("small.npz")),
                    ContainsSubstring("np.savez_compressed"));
}
