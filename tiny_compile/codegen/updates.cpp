// How does one thread add up a chunk's updates? The first of a place is its partial sum, found by hashing,
// so that room does not grow with the places:
//
//   update scatter_add at x 1024 < 50257: y[at0*768 + start] = values x64 of 64
// =>
//   for (int tc_e = 0; tc_e < 1024; tc_e++) {
//     const long long at0 = at[tc_e];
//     const int tc_now = tc_first(tc_places, at0, tc_e);
//     if (tc_now == tc_e) continue;
//     for (long long tc_l = 0; tc_l < 64; tc_l++) values[tc_now * 64 + tc_l] = values[..] + values[tc_e * 64 + tc_l];
//   }
//   for (int tc_s = 0; tc_s < tc_places.count; tc_s++) {
//     const long long at0 = tc_places.place[tc_s], tc_now = tc_places.first[tc_s];
//     for (long long tc_l = 0; tc_l < 64; tc_l++) out_y[at0*768 + start + tc_l] = .. + values[tc_now * 64 + tc_l];
//   }
#include "tiny_compile/codegen/updates.h"

#include "tiny_compile/codegen/cpp_errors.h"
#include "tiny_compile/codegen/index_text.h"

namespace tiny_compile {
namespace {

constexpr const char* kSlots = R"(
// The places of a chunk, each once, the first element of each, and a table of twice as many that finds them.
struct tc_slots {
  int count;
  long long place[1024];
  short first[1024];
  short table[2048];
};

TC_FN void tc_clear(tc_slots& slots) {
  slots.count = 0;
  for (int h = 0; h < 2048; h++) slots.table[h] = -1;
}

// The first element of this place: e, if there was none.
TC_FN int tc_first(tc_slots& slots, long long place, int e) {
  unsigned h = (unsigned)((unsigned long long)place * 0x9E3779B97F4A7C15ull >> 53);
  for (; slots.table[h] >= 0; h = (h + 1) & 2047)
    if (slots.place[slots.table[h]] == place) return slots.first[slots.table[h]];
  slots.table[h] = (short)slots.count;
  slots.place[slots.count] = place;
  slots.first[slots.count++] = (short)e;
  return e;
}
)";

class UpdateWriter {
 public:
  UpdateWriter(KernelText& text, const Tile& tile, const Statement& s)
      : text_(text), out_(text.out), tile_(tile), s_(s) {}

  void write_one() {
    const bool is_chosen = s_.chosen >= 0;
    const std::string index = text_.scalars.index(
                          s_.index, is_chosen ? std::vector{s_.chosen} : std::vector<int>()),
                      value = text_.scalars.name(s_.value);
    const std::string update =
        s_.array >= 0
            ? added(tile_.arrays[s_.array], index, value)
            : updated(text_.calls, s_.op, dtype(),
                      str(pointer_name(text_.program.buffers[s_.buffer]), "[", index, "]"),
                      value);
    out_.line(is_chosen ? str("if (", in_range(text_.scalars.name(s_.chosen)), ") ", update)
                        : update);
  }

  void write_all() {
    const std::string own = str(tile_.arrays[s_.array].name, "[tc_e * ", s_.width, " + tc_l]"),
                      first =
                          str(tile_.arrays[s_.array].name, "[tc_now * ", s_.width, " + tc_l]");
    out_.open("");
    out_.line(str(text_.calls("tc_slots"), " tc_places;"));
    out_.line("tc_clear(tc_places);");
    out_.open(str("for (int tc_e = 0; tc_e < ", c_text(s_.left), "; tc_e++)"));
    out_.line(str("const long long at0 = ", tile_.arrays[s_.chosen].name, "[tc_e];"));
    out_.line(str("if (at0 == -1 || !", in_range("at0"), ") continue;"));
    out_.line("const int tc_now = tc_first(tc_places, at0, tc_e);");
    out_.line("if (tc_now == tc_e) continue;");
    write_neighbours(
        str(first, " = ", updated_value(text_.calls, s_.op, dtype(), first, own), ";"));
    out_.close();
    out_.open("for (int tc_s = 0; tc_s < tc_places.count; tc_s++)");
    out_.line("const long long at0 = tc_places.place[tc_s], tc_now = tc_places.first[tc_s];");
    const std::string place =
        str(pointer_name(text_.program.buffers[s_.buffer]), "[", c_text(s_.index), " + tc_l]");
    write_neighbours(updated(text_.calls, s_.op, dtype(), place, first));
    out_.close();
    out_.close();
  }

 private:
  // By any of a block's threads. Signed sums wrap as unsigned ones do.
  static std::string added(const Array& a, const std::string& index, const std::string& value) {
    const char* const word = size_of(a.dtype) == 8 ? "unsigned long long" : "unsigned";
    return str("atomicAdd((", word, "*)&", a.name, "[", index, "], (", word, ")", value, ");");
  }

  DType dtype() const { return text_.program.buffers[s_.buffer].type.dtype; }

  std::string in_range(const std::string& chosen) const {
    return str(text_.calls("tc_in_range"), "(", chosen, ", ", c_text(s_.place), ")");
  }

  void write_neighbours(const std::string& line) {
    out_.line("#pragma GCC ivdep");
    out_.line(str("for (long long tc_l = 0; tc_l < ", c_text(s_.from), "; tc_l++) ", line));
  }

  KernelText& text_;
  Text& out_;
  const Tile& tile_;
  const Statement& s_;
};

}  // namespace

void write_update(KernelText& text, const Tile& tile, const Statement& s) {
  UpdateWriter writer(text, tile, s);
  if (s.kind == StatementKind::Update)
    writer.write_one();
  else
    writer.write_all();
}

std::string update_helpers(const Calls& calls) {
  return str(calls.has("tc_in_range") ? kInRange : "", calls.has("tc_slots") ? kSlots : "");
}

}  // namespace tiny_compile
