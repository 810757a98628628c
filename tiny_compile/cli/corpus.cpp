// What does a language model read? Windows of bytes, each with the byte that follows.
//
//   "a lesson", windows of 4 at 0 and 3:  "a le" -> " les"
//                                         "esso" -> "sson"
//
// And what must it beat? Counting: how often did which byte follow these four?
#include "tiny_compile/cli/corpus.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <unordered_map>

#include "tiny_compile/base/error.h"
#include "tiny_compile/base/input_file.h"
#include "tiny_compile/base/math.h"

namespace tiny_compile {
namespace {

namespace fs = std::filesystem;

// README.md, then lessons/00_two_speeds/README.md and so on.
std::vector<std::string> pages_below(const std::string& root) {
  std::vector<std::string> lessons;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fs::path(root) / "lessons", error)) {
    const std::string name = entry.path().filename().string();
    const fs::path page = entry.path() / "README.md";
    if (!name.empty() && name[0] >= '0' && name[0] <= '9' && fs::exists(page))
      lessons.push_back(page.string());
  }
  if (lessons.empty())
    fail("train: there are no lessons below '", root,
         "'; run it in the project's folder, or name a text: make train FILE=path");
  std::sort(lessons.begin(), lessons.end());
  lessons.insert(lessons.begin(), (fs::path(root) / "README.md").string());
  return lessons;
}

constexpr int kContext = 4;  // bytes before the fifth

// The `length` bytes before `at` as a number; their count stands above them.
uint64_t key_of(const std::string& bytes, size_t at, int length) {
  uint64_t key = static_cast<uint64_t>(length);
  for (int k = length; k > 0; k--)
    key = key << 8 | static_cast<unsigned char>(bytes[at - static_cast<size_t>(k)]);
  return key;
}

struct Seen {
  uint32_t times = 0, followed = 0;  // how often it came, and how often with a byte behind it
  uint32_t different = 0;            // how many different ones
};
using Counts = std::unordered_map<uint64_t, Seen>;  // of strings of up to five bytes

Counts counted(const std::string& bytes, size_t until) {
  Counts counts;
  for (size_t at = 0; at < until; at++) {
    for (int length = 0; length <= kContext && static_cast<size_t>(length) <= at; length++) {
      const bool is_new = counts[key_of(bytes, at + 1, length + 1)].times++ == 0;
      Seen& context = counts[key_of(bytes, at, length)];
      context.followed++;
      context.different += is_new;
    }
  }
  return counts;
}

double probability(const Counts& counts, const std::string& bytes, size_t at) {
  double p = 1.0 / 256;
  for (int length = 0; length <= kContext && static_cast<size_t>(length) <= at; length++) {
    const auto context = counts.find(key_of(bytes, at, length));
    if (context == counts.end() || context->second.followed == 0) break;
    const auto found = counts.find(key_of(bytes, at + 1, length + 1));
    const double count = found == counts.end() ? 0 : found->second.times;
    const Seen& seen = context->second;
    p = (count + seen.different * p) / (static_cast<double>(seen.followed) + seen.different);
  }
  return p;
}

}  // namespace

uint64_t Corpus::mark() const {  // FNV-1a
  uint64_t mark = 0xcbf29ce484222325u;
  for (const char c : bytes) mark = (mark ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return mark;
}

Corpus read_corpus(const std::vector<std::string>& files, const std::string& root,
                   int64_t context) {
  Corpus corpus;
  for (const std::string& file : files.empty() ? pages_below(root) : files)
    corpus.bytes += read_text(file);
  corpus.held_from = corpus.bytes.size() - corpus.bytes.size() / 10;
  const size_t least = 10 * (static_cast<size_t>(context) + 1);
  if (corpus.bytes.size() < least)
    fail("train: ", files.empty() ? root : files[0], " holds ", corpus.bytes.size(),
         " bytes; windows of ", context, " with a tenth held out need at least ", least,
         ": name a longer text, or give a smaller --context");
  return corpus;
}

Batch windows_at(const std::string& bytes, const std::vector<int64_t>& starts,
                 int64_t context) {
  std::vector<int64_t> now, next;
  for (const int64_t start : starts) {
    for (int64_t k = 0; k < context; k++) {
      const size_t at = static_cast<size_t>(start + k);
      now.push_back(static_cast<unsigned char>(bytes.at(at)));
      next.push_back(static_cast<unsigned char>(bytes.at(at + 1)));
    }
  }
  const Sizes shape{static_cast<int64_t>(starts.size()), context};
  return {from_vector(now, shape), from_vector(next, shape)};
}

Batch batch_at(const Corpus& corpus, uint64_t seed, int64_t step, int64_t batch,
               int64_t context) {
  const uint64_t places = corpus.held_from - static_cast<size_t>(context);
  std::vector<int64_t> starts;
  for (int64_t row = 0; row < batch; row++) {
    const uint64_t word =
        prelude::tc_philox(seed, static_cast<uint64_t>(step), static_cast<uint64_t>(row));
    starts.push_back(static_cast<int64_t>(word * places >> 32));
  }
  return windows_at(corpus.bytes, starts, context);
}

double five_gram_bits(const Corpus& corpus) {
  const Counts counts = counted(corpus.bytes, corpus.held_from);
  double bits = 0;
  for (size_t at = corpus.held_from; at < corpus.bytes.size(); at++)
    bits -= std::log2(probability(counts, corpus.bytes, at));
  return bits / static_cast<double>(corpus.bytes.size() - corpus.held_from);
}

}  // namespace tiny_compile
