// How are boxes and arrows laid out so that arrows are short and few of them cross? In the four
// steps of Sugiyama, Tagawa and Toda: every box gets a layer below all that have arrows to it; an
// arrow over several layers gets a bend in each; layers are sorted by the mean place of neighbours
// until crossings stop falling; then x is chosen so that arrows run straight.
//
//   a -> b -> c, a -> c   =>   a        the bend | stands beside b
//                              b  |
//                              c
#include "tiny_compile/cli/layout.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>

namespace tiny_compile {
namespace {

constexpr double kPadding = 10, kBetween = 18, kBetweenLayers = 30;
constexpr int kSweeps = 24, kPulls = 200;
constexpr double kStraight = 8;  // how much a bend wants to stand under a bend

struct Item {  // a box, a label or a bend
  int layer = 0;
  double width = 0, height = 0, x = 0;
  double weight = 1;  // how much it minds not to stand under its neighbours
  std::vector<int> above, below;
};

class LayerCake {
 public:
  explicit LayerCake(const Drawing& drawing) : drawing_(drawing) {
    add_boxes();
    assign_layers();
    for (const Arrow& arrow : drawing.arrows) stops_.push_back(add_route(arrow));
    for (int i = 0; i < static_cast<int>(items_.size()); i++) {
      layers_.resize(std::max(layers_.size(), static_cast<size_t>(items_[i].layer) + 1));
      layers_[items_[i].layer].push_back(i);
    }
  }

  LaidOut run() {
    sort_layers();
    choose_x();
    return finish();
  }

 private:
  void add_boxes() {
    for (const Box& box : drawing_.boxes) {
      Item item;
      for (const std::string& line : box.lines)
        item.width = std::max(item.width, text_width(line) + 2 * kPadding);
      item.height = static_cast<double>(box.lines.size()) * kLine + kPadding;
      items_.push_back(item);
    }
  }

  static int length(const Arrow& arrow) { return arrow.label.empty() ? 1 : 2; }

  void assign_layers() {
    std::vector<int> in(items_.size()), out(items_.size());
    for (size_t b = 0; b < items_.size(); b++) {
      for (const Arrow& arrow : drawing_.arrows) {
        if (arrow.to != static_cast<int>(b)) continue;
        in[b]++, out[arrow.from]++;
        items_[b].layer = std::max(items_[b].layer, items_[arrow.from].layer + length(arrow));
      }
    }
    for (size_t b = items_.size(); b-- > 0;) {  // down to its readers, where none gets longer
      if (!out[b] || in[b] > out[b]) continue;
      int lowest = INT32_MAX;
      for (const Arrow& arrow : drawing_.arrows) {
        if (arrow.from == static_cast<int>(b))
          lowest = std::min(lowest, items_[arrow.to].layer - length(arrow));
      }
      items_[b].layer = lowest;
    }
  }

  int add_item(int layer, const std::string& label) {
    Item item;
    item.layer = layer;
    item.weight = label.empty() ? 3 : 1;
    const std::vector<std::string> lines = wrapped(label, kLabelWidth);
    for (const std::string& line : lines)
      item.width = std::max(item.width, text_width(line) + kPadding);
    item.height = static_cast<double>(lines.size()) * kLine;
    items_.push_back(item);
    return static_cast<int>(items_.size()) - 1;
  }

  void link(int above, int below) {
    std::vector<int>& known = items_[above].below;
    if (std::find(known.begin(), known.end(), below) != known.end()) return;
    known.push_back(below);
    items_[below].above.push_back(above);
  }

  // Arrows without labels share the bends that leave a box, so that a value that is read in many
  // places is one line with branches.
  std::vector<int> add_route(const Arrow& arrow) {
    std::vector<int> stops = {arrow.from};
    const int last = items_[arrow.to].layer;
    for (int layer = items_[arrow.from].layer + 1; layer < last; layer++) {
      const bool is_label = !arrow.label.empty() && stops.size() == 1;
      const auto key = std::pair(arrow.from, layer);
      const bool shared = arrow.label.empty() && !arrow.is_refused;
      if (shared && bends_.count(key)) {
        stops.push_back(bends_[key]);
      } else {
        stops.push_back(add_item(layer, is_label ? arrow.label : ""));
        if (shared) bends_[key] = stops.back();
      }
    }
    stops.push_back(arrow.to);
    for (size_t k = 0; k + 1 < stops.size(); k++) link(stops[k], stops[k + 1]);
    return stops;
  }

  // Crossings of the arrows between one layer and the next.
  int64_t crossings() const {
    int64_t count = 0;
    std::vector<int> place = places();
    for (const std::vector<int>& layer : layers_) {
      std::vector<std::pair<int, int>> ends;
      for (int i : layer) {
        for (int below : items_[i].below) ends.push_back({place[i], place[below]});
      }
      for (size_t a = 0; a < ends.size(); a++) {
        for (size_t b = a + 1; b < ends.size(); b++)
          count += (ends[a].first < ends[b].first && ends[a].second > ends[b].second) ||
                   (ends[a].first > ends[b].first && ends[a].second < ends[b].second);
      }
    }
    return count;
  }

  std::vector<int> places() const {
    std::vector<int> place(items_.size());
    for (const std::vector<int>& layer : layers_) {
      for (size_t k = 0; k < layer.size(); k++) place[layer[k]] = static_cast<int>(k);
    }
    return place;
  }

  // An item goes to the mean place of its neighbours in the layer above, or below.
  void sort_layer(std::vector<int>& layer, bool by_above) {
    const std::vector<int> place = places();
    std::vector<std::pair<double, int>> wanted;
    for (int i : layer) {
      const std::vector<int>& near = by_above ? items_[i].above : items_[i].below;
      double sum = 0;
      for (int other : near) sum += place[other];
      wanted.push_back({near.empty() ? place[i] : sum / static_cast<double>(near.size()), i});
    }
    std::stable_sort(wanted.begin(), wanted.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t k = 0; k < layer.size(); k++) layer[k] = wanted[k].second;
  }

  void sort_layers() {
    std::vector<std::vector<int>> best = layers_;
    int64_t fewest = crossings();
    for (int sweep = 0; sweep < kSweeps && fewest > 0; sweep++) {
      if (sweep % 2 == 0) {
        for (size_t k = 1; k < layers_.size(); k++) sort_layer(layers_[k], true);
      } else {
        for (size_t k = layers_.size() - 1; k-- > 0;) sort_layer(layers_[k], false);
      }
      if (const int64_t now = crossings(); now < fewest) fewest = now, best = layers_;
    }
    layers_ = best;
  }

  bool is_lonely(int item) const {
    return items_[item].above.empty() && items_[item].below.empty();
  }
  double weight_of(int item) const { return is_lonely(item) ? 1e-6 : items_[item].weight; }
  bool is_bend(int item) const { return items_[item].width == 0; }

  double gap(int left, int right) const {
    return (items_[left].width + items_[right].width) / 2 + kBetween;
  }

  // The x that are nearest to the wanted ones while neighbours keep apart: neighbours that would
  // overlap become a block at their weighted mean (pool adjacent violators).
  void place_layer(const std::vector<int>& layer, const std::vector<double>& wanted) {
    struct Block {
      double mean, weight;
      size_t count;
    };
    std::vector<Block> blocks;
    std::vector<double> offset(layer.size());
    for (size_t k = 0; k < layer.size(); k++) {
      if (k > 0) offset[k] = offset[k - 1] + gap(layer[k - 1], layer[k]);
      blocks.push_back({wanted[k] - offset[k], weight_of(layer[k]), 1});
      while (blocks.size() > 1 && blocks[blocks.size() - 2].mean > blocks.back().mean) {
        const Block last = blocks.back();
        blocks.pop_back();
        Block& block = blocks.back();
        block.mean = (block.mean * block.weight + last.mean * last.weight) /
                     (block.weight + last.weight);
        block.weight += last.weight;
        block.count += last.count;
      }
    }
    size_t k = 0;
    for (const Block& block : blocks) {
      for (size_t n = 0; n < block.count; n++, k++) items_[layer[k]].x = block.mean + offset[k];
    }
  }

  // An item without arrows goes beside another, so that it does not drift away.
  void seat_lonely(const std::vector<int>& layer, std::vector<double>& wanted) const {
    size_t first = 0;  // that is not lonely
    while (first < layer.size() && is_lonely(layer[first])) first++;
    if (first == layer.size()) wanted[first = 0] = 0;
    for (size_t k = first; k-- > 0;) wanted[k] = wanted[k + 1] - gap(layer[k], layer[k + 1]);
    for (size_t k = first + 1; k < layer.size(); k++) {
      if (is_lonely(layer[k])) wanted[k] = wanted[k - 1] + gap(layer[k - 1], layer[k]);
    }
  }

  // Every item towards its neighbours above, or below, or both.
  void pull(const std::vector<int>& layer, bool above, bool below) {
    std::vector<double> wanted;
    for (int i : layer) {
      double sum = 0, weight = 0;
      auto add = [&](const std::vector<int>& near) {
        for (int other : near) {
          const double pull = is_bend(i) && is_bend(other) ? kStraight : 1;
          sum += items_[other].x * pull;
          weight += pull;
        }
      };
      if (above) add(items_[i].above);
      if (below) add(items_[i].below);
      wanted.push_back(weight > 0 ? sum / weight : items_[i].x);
    }
    seat_lonely(layer, wanted);
    place_layer(layer, wanted);
  }

  void choose_x() {
    for (const std::vector<int>& layer : layers_)
      place_layer(layer, std::vector<double>(layer.size()));
    for (int sweep = 0; sweep < kPulls; sweep++) {
      const bool both = sweep >= kPulls / 3;
      for (const std::vector<int>& layer : layers_) pull(layer, true, both);
      for (size_t k = layers_.size(); k-- > 0;) pull(layers_[k], both, true);
    }
  }

  LaidOut finish() {
    LaidOut layout;
    double left = 1e9, right = -1e9;
    for (const Item& item : items_) {
      left = std::min(left, item.x - item.width / 2);
      right = std::max(right, item.x + item.width / 2);
    }
    std::vector<Place> places(items_.size());
    double y = 0;
    for (const std::vector<int>& layer : layers_) {
      double height = 0;
      for (int i : layer) height = std::max(height, items_[i].height);
      for (int i : layer) {
        const double tall = items_[i].width > 0 ? items_[i].height : height;
        places[i] = {{items_[i].x - left, y + height / 2}, items_[i].width, tall};
      }
      y += height + kBetweenLayers;
    }
    layout.width = items_.empty() ? 0 : right - left;
    layout.height = std::max(y - kBetweenLayers, 0.0);
    const size_t boxes = drawing_.boxes.size();
    layout.boxes.assign(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(boxes));
    for (size_t a = 0; a < stops_.size(); a++) {
      Route route;
      for (int stop : stops_[a]) route.stops.push_back(places[stop]);
      if (!drawing_.arrows[a].label.empty()) route.label = 1;
      layout.routes.push_back(std::move(route));
    }
    return layout;
  }

  const Drawing& drawing_;
  std::vector<Item> items_;
  std::vector<std::vector<int>> layers_, stops_;
  std::map<std::pair<int, int>, int> bends_;  // of a box, in a layer
};

}  // namespace

LaidOut lay_out(const Drawing& drawing) { return LayerCake(drawing).run(); }

double text_width(const std::string& text) {
  const auto count = std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  });
  return static_cast<double>(count) * kCharacter;
}

}  // namespace tiny_compile
