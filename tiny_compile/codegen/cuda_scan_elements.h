// The elements of a scan's tiles, between memory and the threads that scan them.
#pragma once

#include "tiny_compile/codegen/cuda_scan_shape.h"
#include "tiny_compile/codegen/cuda_text.h"
#include "tiny_compile/codegen/scan.h"

namespace tiny_compile {

// Writes the text of a tile's loads and stores. `tile` is the text of its number. A thread finds its
// group in values[16] once put, and leaves its results there and in places[16].
class ScanElements {
 public:
  ScanElements(CudaText& text, const ScanShape& shape);
  ScanElements(const ScanElements&) = delete;

  void declare();                     // shared memory, registers, and a thread's row and group
  void declare_row();                 // the thread's row
  void ask(const std::string& tile);  // loads that are under way while another tile is scanned
  void put(const std::string& tile);  // values to where threads take them; and other stores
  void take();                        // values[16], once all threads have put theirs
  // The results of a scan, to where threads take them, and to memory, once all have given theirs.
  void give(const Step& scan);
  void home(const std::string& tile, const Step& scan);

  bool asks() const { return !early_.empty(); }
  int64_t shared_bytes() const;
  // Whether results lie where other threads put values.
  bool moves_in_two_ways() const;
  bool is_whole() const;  // no block has rows beyond the last one
  std::string first_of_group(const std::string& tile) const;
  const std::vector<const Step*>& of_row() const { return of_row_; }
  const std::vector<bool>& defined() const { return defined_; }

 private:
  int64_t size_of_value() const;
  int64_t size_of_result(const Step& scan) const;
  int64_t slot() const;
  int64_t pitch(int64_t size) const;  // of groups in shared memory, in elements of this size
  int64_t row_padding() const;        // bytes behind a row's groups
  bool is_early(int id) const;
  void choose_early();
  std::string early_element(int id) const;
  void home_pack(const Step& scan);
  void declare_values();
  void open_group(const std::string& type, int64_t size);
  void open_points(const std::string& tile, bool turned);
  std::vector<std::string> place_in_memory(const std::string& tile, bool turned);
  std::vector<std::string> place_in_group(const std::string& tile);
  void unpack_row();
  void open_elements();
  void close_elements();
  void close_points();
  std::string lane() const { return vector_ == 1 ? "" : ".at[v]"; }
  std::string pack_type(const std::string& type) const;
  std::string in_tile(const std::string& type, int64_t size) const;
  std::string result_type(const Step& scan) const {
    return gives_places(scan) ? text_.integer : type_;
  }
  std::string mask_of_element();

  CudaText& text_;
  Text& out_;
  const Kernel& kernel_;
  const Step& scan_;
  const Axis& axis_;
  const ScanShape shape_;
  const ScanText words_;
  const std::string type_;
  const std::vector<Step> along_;
  const std::vector<int> ids_;
  const int vector_;      // elements that a thread moves at once
  const int64_t points_;  // packs of a thread
  std::vector<bool> defined_;
  bool is_guarded_ = false;  // the point at hand
  std::vector<int> early_;
  std::vector<const Step*> stores_, of_row_;  // for each element; of the total
};

}  // namespace tiny_compile
