// What a tile reads and writes, and what must hold of it where it does.
#pragma once

#include <string>

#include "tiny_compile/loops/mask_facts.h"
#include "tiny_compile/tile/known.h"

namespace tiny_compile {

struct Fault {
  std::string why;
};

template <typename... Parts>
void require(bool holds, const Parts&... parts) {
  if (!holds) throw Fault{str(parts...)};
}

bool is_never(const Scalar& s);  // no place that data could choose is one

// What a tile reads and writes, with what is known where it does.
class Accesses {
 public:
  Accesses(const Program& program, const Kernel& kernel, const Tile& tile)
      : known(tile), program_(program), kernel_(kernel), tile_(tile), masks_(tile.kernel) {}

  Known known;
  std::vector<int> holding;  // bool scalars that are true here; -1: nothing is known

  void check_readable(const Expr& index, size_t places = 0);
  void check_element(int array, const Expr& index, int width = 1, size_t places = 0);
  bool is_buffer(int buffer) const;
  void check_place(int buffer, const Expr& index, int mask, size_t places, bool never);
  void check_vector(const Statement& s, size_t places = 0, bool never = false);
  // Whether the `left` elements of a vector are known to be there.
  bool ends_in_time(const Statement& s, size_t places);

  void check_stream(const Statement& s);
  void check_tree(const Statement& s);
  void check_update(const Statement& s);  // the place, and of an UpdateAll the arrays
  void check_sum(const Statement& s);
  void check_prefetch(const Statement& s);
  void use(int buffer, bool stores) const;
  void check_read(const Scalar& s);
  void check_votes(const Scalar& s);
  void check_name(const std::string& name) const;

  // A scalar whose operands are known.
  void check_computed(int id, const Scalar& s);

 private:
  const Program& program_;
  const Kernel& kernel_;
  const Tile& tile_;
  MaskFacts masks_;
};

}  // namespace tiny_compile
