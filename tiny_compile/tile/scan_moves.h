// How a scan's elements come to the threads that have a group of 16 each, and its results to memory.
#pragma once

#include <map>
#include <vector>

#include "tiny_compile/tile/running.h"
#include "tiny_compile/tile/scan_points.h"

namespace tiny_compile {

class ScanMoves {
 public:
  ScanMoves(ScanTile& s, Running& running);

  // In front of all tiles.
  Body begin();
  // Of a tile: what is asked for early; what the threads' values are made of, to their places; the thread's
  // group.
  Body ask(const Expr& tile) const;
  Body put(const Expr& tile);
  Body take() const;
  // The thread's results, where others find them; those of a step from there to memory.
  Body give() const;
  Body home(const Expr& tile, const Step& step);

  bool asks() const { return !early_.empty(); }
  const ScanPoints& points() const { return points_; }

  std::vector<bool> defined;     // for the thread's row, where elements lie across
  int values = -1, places = -1;  // arrays: the thread's group

 private:
  int add(const char* what, DType dtype, int64_t size, Space space = Space::Register);
  void choose_early();
  std::map<int, int> load_packs(Body& body, const ScanPoint& at);
  Body define_element(const std::map<int, int>& packs, std::vector<bool>& known) const;
  Body put_value(const ScanPoint& at, const Conditions& inside, Body& after);
  Body copy_group(int to, const Expr& there, int from, const Expr& here) const;
  int result(Body& body, const Step& step, const Expr& place) const;

  ScanTile& s_;
  Running& running_;
  const std::vector<int> ids_;       // what elements are made of
  const ScanPoints points_;          // the thread's
  std::vector<const Step*> stores_;  // of elements, beside the scan
  std::map<int, int> early_;         // load -> array
  int shared_ = -1, shared_places_ = -1;
  int64_t pitch_ = 0, place_pitch_ = 0;  // of a group there, elements
};

}  // namespace tiny_compile
