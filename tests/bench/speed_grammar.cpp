// How often is each family drawn? By weights that were fixed before anybody measured one of
// them: they do not follow what we are fast at, and are not to be changed with the compiler.
#include "tests/bench/speed_grammar.h"

#include <charconv>

#include "tests/bench/speed_families.h"

namespace bench {
namespace {

namespace tc = tiny_compile;

struct Family {
  const char* name;
  int weight;
  void (*make)(Builder&);
};

// Fixed on 2026-11-24.
constexpr Family kFamilies[] = {
    {"norm", 8, draw_norm},
    {"norm_gradient", 6, draw_norm_gradient},
    {"softmax", 7, draw_softmax},
    {"softmax_gradient", 4, draw_softmax_gradient},
    {"loss", 5, draw_loss},
    {"loss_gradient", 6, draw_loss_gradient},
    {"reduction", 6, draw_reduction},
    {"statistics", 2, draw_statistics},
    {"argmax", 4, draw_argmax},
    {"scan", 4, draw_scan},
    {"activation", 6, draw_activation},
    {"activation_gradient", 4, draw_activation_gradient},
    {"chain", 3, draw_chain},
    {"quantise", 3, draw_quantise},
    {"dequantise", 3, draw_dequantise},
    {"image", 1, draw_image},
    {"rotary", 2, draw_rotary},
    {"optimiser", 4, draw_optimiser},
    {"layout", 5, draw_layout},
    {"join", 2, draw_join},
    {"mask", 4, draw_mask},
    {"pooling", 3, draw_pooling},
    {"window", 3, draw_window},
    {"embedding", 2, draw_embedding},
    {"embedding_gradient", 2, draw_embedding_gradient},
    {"thin_product", 3, draw_thin_product},
    {"batched_product", 3, draw_batched_product},
    {"prologue_product", 2, draw_prologue_product},
    {"epilogue_product", 3, draw_epilogue_product},
};

const Family& drawn_family(uint64_t seed) {
  int64_t total = 0;
  for (const Family& family : kFamilies) total += family.weight;
  int64_t left = Random(seed ^ 0x66616d696c69u).below(total);
  for (const Family& family : kFamilies) {
    if (left < family.weight) return family;
    left -= family.weight;
  }
  return kFamilies[0];
}

Draw drawn(const Family& family, uint64_t seed, Scale scale) {
  Builder builder(seed, scale);
  family.make(builder);
  Draw draw = std::move(builder).finish();
  draw.family = family.name;
  return draw;
}

}  // namespace

Draw draw(uint64_t seed, Scale scale) { return drawn(drawn_family(seed), seed, scale); }

Draw draw_of(const std::string& family, uint64_t seed, Scale scale) {
  for (const Family& one : kFamilies) {
    if (family == one.name) return drawn(one, seed, scale);
  }
  tc::fail("no class '", family, "': there are ", tc::join(families(), ", "));
}

std::vector<std::string> families() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.push_back(family.name);
  return names;
}

uint64_t seed_of(const std::string& hash, uint64_t index) {
  uint64_t start = 0;
  const std::string digits = hash.substr(0, 16);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), start, 16);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.size() < 7)
    tc::fail("'", hash, "' is no commit's hash: at least 7 hexadecimal digits");
  // What follows the first 7 digits does not count: a record may name the commit by these.
  start = start >> (4 * (digits.size() - 7));
  Random random(start << 32 | index);
  random.next();
  return random.next() >> 16;
}

bool has_max_autotune(uint64_t seed) { return Random(seed ^ 0x6d617875u).below(3) == 0; }

}  // namespace bench
