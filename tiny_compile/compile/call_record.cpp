// How can two machines find the first step of a training in which they part? Each writes down a
// hash of what every call got and gave: lines are compared in a moment, and the first that
// differ name the call. The elements of a few calls, which are asked for by number, are enough
// to go on from there:
//
//   A: 7 step_3f in a b, out c      B: 7 step_3f in a b, out d   ->   call 7, on a and b
//
// A tensor's file is named by its hash, so that weights that step 6 gave and step 7 got are
// there once.
#include "tiny_compile/compile/call_record.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>

#include "tiny_compile/base/input_file.h"
#include "tiny_compile/runtime/disk_cache.h"
#include "tiny_compile/runtime/log.h"
#include "tiny_compile/tensor/npy.h"

namespace tiny_compile {
namespace {

constexpr const char* kFile = "calls.txt";
constexpr const char* kHeader = "tiny_compile calls 1";

const char* setting(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? value : nullptr;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 16 &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

// Whether "1-3,17" or "all" has this number.
bool lists(const std::string& list, size_t number) {
  if (list == "all") return true;
  bool result = false;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t dash = part.find('-');
    const std::string first = part.substr(0, dash),
                      last = dash == std::string::npos ? first : part.substr(dash + 1);
    if (!is_number(first) || !is_number(last))
      fail("TC_DEBUG_CALLS=", list, ": write all, or numbers of calls as in 1-3,17, or 0");
    result = result || (std::stoull(first) <= number && number <= std::stoull(last));
  }
  return result;
}

// The number of this process's next call into that directory; the first begins its file.
size_t next_number(const std::string& directory) {
  static std::mutex mutex;
  static auto* numbers = new std::map<std::string, size_t>;
  const std::lock_guard lock(mutex);
  const size_t number = ++(*numbers)[directory];
  if (number == 1) keep_text(kFile, str(kHeader, "\n"));
  return number;
}

template <typename Word>
void make_nans_one(Tensor& tensor, Word infinity, Word quiet) {
  auto* words = reinterpret_cast<Word*>(tensor.bytes());
  const Word magnitude = static_cast<Word>(~Word{0} >> 1);
  for (int64_t i = 0; i < tensor.numel(); i++) {
    if ((words[i] & magnitude) > infinity) words[i] = quiet;
  }
}

// Row-major, on the CPU, in which every NaN is the quiet one.
Tensor canonical(const Tensor& tensor) {
  Tensor copy = contiguous_copy(tensor);
  switch (copy.dtype()) {
    case DType::f32: make_nans_one<uint32_t>(copy, 0x7f800000, 0x7fc00000); break;
    case DType::f64:
      make_nans_one<uint64_t>(copy, 0x7ff0000000000000, 0x7ff8000000000000);
      break;
    case DType::f16: make_nans_one<uint16_t>(copy, 0x7c00, 0x7e00); break;
    case DType::bf16: make_nans_one<uint16_t>(copy, 0x7f80, 0x7fc0); break;
    default: break;
  }
  return copy;
}

std::string key_of(std::string_view bytes) {
  return content_key({{"tensor", std::string(bytes)}});
}

RecordedTensor parse_tensor(const std::string& word) {
  const size_t open = word.find('['), close = word.find("]:");
  const bool whole = open != std::string::npos && close != std::string::npos && open < close;
  const auto dtype = whole ? dtype_from(word.substr(0, open)) : std::nullopt;
  if (!dtype) fail("'", word, "' is no tensor");
  RecordedTensor result{*dtype, {}, word.substr(close + 2)};
  std::istringstream sizes(word.substr(open + 1, close - open - 1));
  for (std::string size; std::getline(sizes, size, ',');) {
    if (!is_number(size)) fail("'", word, "' is no tensor");
    result.shape.push_back(std::stoll(size));
  }
  if (result.key.size() != 32 ||
      result.key.find_first_not_of("0123456789abcdef") != std::string::npos)
    fail("'", word, "' has no hash of 32 digits");
  return result;
}

// "7 step_3fa2c1 in f32[2]:9c41..." behind the calls that were read before it.
void read_line(const std::string& line, std::vector<RecordedCall>& calls) {
  std::istringstream words(line);
  std::string number, graph, what;
  words >> number >> graph >> what;
  if (!is_number(number) || graph.size() < 8) fail("no number and name of a call");
  std::vector<RecordedTensor> tensors;
  for (std::string word; words >> word;) tensors.push_back(parse_tensor(word));
  const size_t at = std::stoull(number);
  if (what == "in") {
    calls.push_back({at, graph, std::move(tensors), {}, {}, false});
    return;
  }
  auto call = calls.rbegin();  // calls of several threads may mingle
  while (call != calls.rend() && call->number != at) ++call;
  if (call == calls.rend() || call->graph != graph) fail("call ", at, " has no inputs");
  if (what == "out") {
    call->outputs = std::move(tensors);
    call->ended = true;
  } else if (what == "temporaries") {
    call->temporaries = std::move(tensors);
  } else {
    fail("'", what, "' is neither in, nor out, nor temporaries");
  }
}

}  // namespace

std::string RecordedCall::name() const { return graph.substr(0, graph.size() - 7); }

Program with_temporaries_out(const Program& program) {
  Program result = program;
  result.arena_bytes = 0;
  for (size_t k = 0; k < result.buffers.size(); k++) {
    Buffer& buffer = result.buffers[k];
    buffer.over = -1;  // what it holds would be gone at the end
    if (buffer.role != Role::Temporary) continue;
    buffer.role = Role::Output;
    buffer.place = -1;
    result.outputs.push_back(static_cast<int>(k));
  }
  return result;
}

Staged recordable(Staged staged) {
  const char* wanted = setting("TC_DEBUG_BUFFERS");
  if (!wanted || std::string(wanted) != "1") return staged;
  staged.program = with_temporaries_out(staged.program);
  staged.tiles.program = staged.program;  // a tile's buffers keep their numbers
  staged.source = emit(staged.tiles);
  return staged;
}

CallRecord::CallRecord(const Graph& graph, std::span<const Tensor> inputs)
    : outputs_(graph.outputs.size()) {
  const char* calls = setting("TC_DEBUG_CALLS");
  if (!calls) return;
  const char* directory = setting("TC_DEBUG_DIR");
  if (!directory) return;
  lists(calls, 0);  // an error before anything is written
  const std::string text = print(graph);
  graph_ = kept_name(graph.name, text);
  keep_text(graph_ + "_0_trace.txt", text);  // also where the interpreter runs it
  number_ = next_number(directory);
  whole_ = lists(calls, number_);
  write("in", inputs);
}

std::vector<Tensor> CallRecord::end(std::vector<Tensor> returned) {
  const std::span<const Tensor> all = returned;
  const size_t outputs = std::min(outputs_, all.size());
  if (number_ && outputs < all.size()) write("temporaries", all.subspan(outputs));
  if (number_) write("out", all.first(outputs));
  returned.resize(outputs);
  return returned;
}

void CallRecord::write(const char* what, std::span<const Tensor> tensors) const {
  std::string line = str(number_, " ", graph_, " ", what);
  for (const Tensor& tensor : tensors) {
    const Tensor flat = canonical(tensor);
    const std::string_view bytes = bytes_of(flat);
    const std::string key = key_of(bytes);
    line += str(" ", flat.dtype(), "[", join(flat.shape(), ","), "]:", key);
    if (whole_) keep_once("tensors/" + key, bytes);
  }
  keep_line(kFile, line + "\n");
}

std::vector<RecordedCall> read_calls(const std::string& directory) {
  const std::string path = directory + "/" + kFile;
  if (!std::filesystem::exists(path)) return {};
  const std::string text = read_text(path);
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  if (line != kHeader)
    fail(path, ":1: is not '", kHeader, "': no file of calls, or one of another version");
  std::vector<RecordedCall> calls;
  for (size_t number = 2; std::getline(lines, line); number++) {
    try {
      read_line(line, calls);
      if (lines.eof()) fail("the line has no end");
    } catch (const Error& error) {
      fail(path, ":", number, ": was cut or changed: ", error.what());
    }
  }
  return calls;
}

std::optional<Tensor> kept_tensor(const std::string& directory, const RecordedTensor& tensor) {
  const std::string path = directory + "/tensors/" + tensor.key;
  std::error_code missing;
  const auto bytes = std::filesystem::file_size(path, missing);
  if (missing) return std::nullopt;
  int64_t wanted = size_of(tensor.dtype);
  for (int64_t size : tensor.shape) {
    if (size > 0 && wanted > (int64_t{1} << 50) / size) fail(path, ": no tensor is so large");
    wanted *= size;
  }
  std::string content;
  if (bytes == static_cast<uintmax_t>(wanted))
    content = InputFile(path).read(static_cast<size_t>(bytes));
  if (bytes != static_cast<uintmax_t>(wanted) || key_of(content) != tensor.key)
    fail(path, " was cut or changed: its elements are not those of its name");
  Tensor result = empty_tensor(tensor.dtype, tensor.shape);
  if (!content.empty()) std::memcpy(result.bytes(), content.data(), content.size());
  return result;
}

}  // namespace tiny_compile
