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

// What of the layout is known so far.
struct LayerCake {
  const Drawing& drawing;
  std::vector<Item> items{};                        // the boxes, then labels and bends
  std::vector<std::vector<int>> layers{}, stops{};  // of items: each layer's, each arrow's
  std::map<std::pair<int, int>, int> bends{};       // of a box, in a layer
};

// --- layers ----------------------------------------------------------------------------------

void add_boxes(LayerCake& c) {
  for (const Box& box : c.drawing.boxes) {
    Item item;
    for (const std::string& line : box.lines)
      item.width = std::max(item.width, text_width(line) + 2 * kPadding);
    item.height = static_cast<double>(box.lines.size()) * kLine + kPadding;
    c.items.push_back(item);
  }
}

int length(const Arrow& arrow) { return arrow.label.empty() ? 1 : 2; }

void assign_layers(LayerCake& c) {
  std::vector<int> in(c.items.size()), out(c.items.size());
  for (size_t b = 0; b < c.items.size(); b++) {
    for (const Arrow& arrow : c.drawing.arrows) {
      if (arrow.to != static_cast<int>(b)) continue;
      in[b]++, out[arrow.from]++;
      c.items[b].layer = std::max(c.items[b].layer, c.items[arrow.from].layer + length(arrow));
    }
  }
  for (size_t b = c.items.size(); b-- > 0;) {  // down to its readers, where none gets longer
    if (!out[b] || in[b] > out[b]) continue;
    int lowest = INT32_MAX;
    for (const Arrow& arrow : c.drawing.arrows) {
      if (arrow.from == static_cast<int>(b))
        lowest = std::min(lowest, c.items[arrow.to].layer - length(arrow));
    }
    c.items[b].layer = lowest;
  }
}

int add_item(LayerCake& c, int layer, const std::string& label) {
  Item item;
  item.layer = layer;
  item.weight = label.empty() ? 3 : 1;
  const std::vector<std::string> lines = wrapped(label, kLabelWidth);
  for (const std::string& line : lines)
    item.width = std::max(item.width, text_width(line) + kPadding);
  item.height = static_cast<double>(lines.size()) * kLine;
  c.items.push_back(item);
  return static_cast<int>(c.items.size()) - 1;
}

void link(LayerCake& c, int above, int below) {
  std::vector<int>& known = c.items[above].below;
  if (std::find(known.begin(), known.end(), below) != known.end()) return;
  known.push_back(below);
  c.items[below].above.push_back(above);
}

// Arrows without labels share the bends that leave a box, so that a value that is read in many
// places is one line with branches.
std::vector<int> add_route(LayerCake& c, const Arrow& arrow) {
  std::vector<int> stops = {arrow.from};
  const int last = c.items[arrow.to].layer;
  for (int layer = c.items[arrow.from].layer + 1; layer < last; layer++) {
    const bool is_label = !arrow.label.empty() && stops.size() == 1;
    const auto key = std::pair(arrow.from, layer);
    const bool shared = arrow.label.empty() && !arrow.is_refused;
    if (shared && c.bends.count(key)) {
      stops.push_back(c.bends[key]);
    } else {
      stops.push_back(add_item(c, layer, is_label ? arrow.label : ""));
      if (shared) c.bends[key] = stops.back();
    }
  }
  stops.push_back(arrow.to);
  for (size_t k = 0; k + 1 < stops.size(); k++) link(c, stops[k], stops[k + 1]);
  return stops;
}

LayerCake layers_of(const Drawing& drawing) {
  LayerCake c{drawing};
  add_boxes(c);
  assign_layers(c);
  for (const Arrow& arrow : drawing.arrows) c.stops.push_back(add_route(c, arrow));
  for (int i = 0; i < static_cast<int>(c.items.size()); i++) {
    c.layers.resize(std::max(c.layers.size(), static_cast<size_t>(c.items[i].layer) + 1));
    c.layers[c.items[i].layer].push_back(i);
  }
  return c;
}

// --- the order in a layer --------------------------------------------------------------------

std::vector<int> places(const LayerCake& c) {
  std::vector<int> place(c.items.size());
  for (const std::vector<int>& layer : c.layers) {
    for (size_t k = 0; k < layer.size(); k++) place[layer[k]] = static_cast<int>(k);
  }
  return place;
}

// Crossings of the arrows between one layer and the next.
int64_t crossings(const LayerCake& c) {
  int64_t count = 0;
  std::vector<int> place = places(c);
  for (const std::vector<int>& layer : c.layers) {
    std::vector<std::pair<int, int>> ends;
    for (int i : layer) {
      for (int below : c.items[i].below) ends.push_back({place[i], place[below]});
    }
    for (size_t a = 0; a < ends.size(); a++) {
      for (size_t b = a + 1; b < ends.size(); b++)
        count += (ends[a].first < ends[b].first && ends[a].second > ends[b].second) ||
                 (ends[a].first > ends[b].first && ends[a].second < ends[b].second);
    }
  }
  return count;
}

// An item goes to the mean place of its neighbours in the layer above, or below.
void sort_layer(LayerCake& c, std::vector<int>& layer, bool by_above) {
  const std::vector<int> place = places(c);
  std::vector<std::pair<double, int>> wanted;
  for (int i : layer) {
    const std::vector<int>& near = by_above ? c.items[i].above : c.items[i].below;
    double sum = 0;
    for (int other : near) sum += place[other];
    wanted.push_back({near.empty() ? place[i] : sum / static_cast<double>(near.size()), i});
  }
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t k = 0; k < layer.size(); k++) layer[k] = wanted[k].second;
}

void sort_layers(LayerCake& c) {
  std::vector<std::vector<int>> best = c.layers;
  int64_t fewest = crossings(c);
  for (int sweep = 0; sweep < kSweeps && fewest > 0; sweep++) {
    if (sweep % 2 == 0) {
      for (size_t k = 1; k < c.layers.size(); k++) sort_layer(c, c.layers[k], true);
    } else {
      for (size_t k = c.layers.size() - 1; k-- > 0;) sort_layer(c, c.layers[k], false);
    }
    if (const int64_t now = crossings(c); now < fewest) fewest = now, best = c.layers;
  }
  c.layers = best;
}

// --- x ---------------------------------------------------------------------------------------

bool is_lonely(const LayerCake& c, int item) {
  return c.items[item].above.empty() && c.items[item].below.empty();
}

double weight_of(const LayerCake& c, int item) {
  return is_lonely(c, item) ? 1e-6 : c.items[item].weight;
}

double gap(const LayerCake& c, int left, int right) {
  return (c.items[left].width + c.items[right].width) / 2 + kBetween;
}

// The x that are nearest to the wanted ones while neighbours keep apart: neighbours that would
// overlap become a block at their weighted mean (pool adjacent violators).
void place_layer(LayerCake& c, const std::vector<int>& layer,
                 const std::vector<double>& wanted) {
  struct Block {
    double mean, weight;
    size_t count;
  };
  std::vector<Block> blocks;
  std::vector<double> offset(layer.size());
  for (size_t k = 0; k < layer.size(); k++) {
    if (k > 0) offset[k] = offset[k - 1] + gap(c, layer[k - 1], layer[k]);
    blocks.push_back({wanted[k] - offset[k], weight_of(c, layer[k]), 1});
    while (blocks.size() > 1 && blocks[blocks.size() - 2].mean > blocks.back().mean) {
      const Block last = blocks.back();
      blocks.pop_back();
      Block& block = blocks.back();
      block.mean =
          (block.mean * block.weight + last.mean * last.weight) / (block.weight + last.weight);
      block.weight += last.weight;
      block.count += last.count;
    }
  }
  size_t k = 0;
  for (const Block& block : blocks) {
    for (size_t n = 0; n < block.count; n++, k++) c.items[layer[k]].x = block.mean + offset[k];
  }
}

bool is_bend(const LayerCake& c, int item) { return c.items[item].width == 0; }

// An item without arrows goes beside another, so that it does not drift away.
void seat_lonely(const LayerCake& c, const std::vector<int>& layer,
                 std::vector<double>& wanted) {
  size_t first = 0;  // that is not lonely
  while (first < layer.size() && is_lonely(c, layer[first])) first++;
  if (first == layer.size()) wanted[first = 0] = 0;
  for (size_t k = first; k-- > 0;) wanted[k] = wanted[k + 1] - gap(c, layer[k], layer[k + 1]);
  for (size_t k = first + 1; k < layer.size(); k++) {
    if (is_lonely(c, layer[k])) wanted[k] = wanted[k - 1] + gap(c, layer[k - 1], layer[k]);
  }
}

// Every item towards its neighbours above, or below, or both.
void pull(LayerCake& c, const std::vector<int>& layer, bool above, bool below) {
  std::vector<double> wanted;
  for (int i : layer) {
    double sum = 0, weight = 0;
    auto add = [&](const std::vector<int>& near) {
      for (int other : near) {
        const double pull = is_bend(c, i) && is_bend(c, other) ? kStraight : 1;
        sum += c.items[other].x * pull;
        weight += pull;
      }
    };
    if (above) add(c.items[i].above);
    if (below) add(c.items[i].below);
    wanted.push_back(weight > 0 ? sum / weight : c.items[i].x);
  }
  seat_lonely(c, layer, wanted);
  place_layer(c, layer, wanted);
}

void choose_x(LayerCake& c) {
  for (const std::vector<int>& layer : c.layers)
    place_layer(c, layer, std::vector<double>(layer.size()));
  for (int sweep = 0; sweep < kPulls; sweep++) {
    const bool both = sweep >= kPulls / 3;
    for (const std::vector<int>& layer : c.layers) pull(c, layer, true, both);
    for (size_t k = c.layers.size(); k-- > 0;) pull(c, c.layers[k], both, true);
  }
}

// --- the drawing -----------------------------------------------------------------------------

LaidOut finish(const LayerCake& c) {
  LaidOut layout;
  double left = 1e9, right = -1e9;
  for (const Item& item : c.items) {
    left = std::min(left, item.x - item.width / 2);
    right = std::max(right, item.x + item.width / 2);
  }
  std::vector<Place> places(c.items.size());
  double y = 0;
  for (const std::vector<int>& layer : c.layers) {
    double height = 0;
    for (int i : layer) height = std::max(height, c.items[i].height);
    for (int i : layer) {
      const double tall = c.items[i].width > 0 ? c.items[i].height : height;
      places[i] = {{c.items[i].x - left, y + height / 2}, c.items[i].width, tall};
    }
    y += height + kBetweenLayers;
  }
  layout.width = c.items.empty() ? 0 : right - left;
  layout.height = std::max(y - kBetweenLayers, 0.0);
  const size_t boxes = c.drawing.boxes.size();
  layout.boxes.assign(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(boxes));
  for (size_t a = 0; a < c.stops.size(); a++) {
    Route route;
    for (int stop : c.stops[a]) route.stops.push_back(places[stop]);
    if (!c.drawing.arrows[a].label.empty()) route.label = 1;
    layout.routes.push_back(std::move(route));
  }
  return layout;
}

}  // namespace

LaidOut lay_out(const Drawing& drawing) {
  LayerCake c = layers_of(drawing);
  sort_layers(c);
  choose_x(c);
  return finish(c);
}

double text_width(const std::string& text) {
  const auto count = std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  });
  return static_cast<double>(count) * kCharacter;
}

}  // namespace tiny_compile
