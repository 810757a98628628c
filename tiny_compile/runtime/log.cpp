// What happened in there? TC_LOGS=fusion prints "[fusion] add_2 + matmul_3: ..." lines; unknown
// channels are named once a process.
#include "tiny_compile/runtime/log.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <system_error>

#include "tiny_compile/runtime/disk_cache.h"

namespace tiny_compile {
namespace {

constexpr std::string_view kChannels =
    ",graph,passes,fusion,loops,schedule,memory,tile,code,guards,recompiles,cache,autotune,";

// Whether a comma-separated list has an item.
bool lists(std::string_view list, std::string_view item) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    if (list.substr(0, comma) == item) return true;
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return false;
}

void name_unknown_channels(std::string_view list) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    const std::string_view item = list.substr(0, comma);
    if (!item.empty() && !lists(kChannels, item))
      std::fprintf(stderr, "TC_LOGS: no channel '%.*s'; there are %s\n",
                   static_cast<int>(item.size()), item.data(),
                   std::string(kChannels.substr(1, kChannels.size() - 2)).c_str());
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
}

std::string path_of(const std::string& file_name) {
  const char* directory = std::getenv("TC_DEBUG_DIR");
  return directory && *directory ? std::string(directory) + "/" + file_name : "";
}

void keep(const std::string& file_name, std::string_view text, std::ios::openmode mode) {
  const std::string path = path_of(file_name);
  if (path.empty()) return;
  std::error_code untold;  // the file's own error says it
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), untold);
  std::ofstream out(path, std::ios::binary | mode);
  out << text;
  out.close();
  if (!out)
    std::fprintf(stderr, "TC_DEBUG_DIR: cannot write %s: %s\n", path.c_str(),
                 std::strerror(errno));
}

}  // namespace

bool log_enabled(std::string_view channel) {
  const char* wanted = std::getenv("TC_LOGS");
  if (!wanted) return false;
  static std::once_flag checked;
  std::call_once(checked, name_unknown_channels, wanted);
  return lists(wanted, channel);
}

void log(std::string_view channel, const std::string& text) {
  if (!log_enabled(channel)) return;
  std::fprintf(stderr, "[%.*s] %s%s", static_cast<int>(channel.size()), channel.data(),
               text.c_str(), text.empty() || text.back() != '\n' ? "\n" : "");
}

void keep_text(const std::string& file_name, std::string_view text) {
  keep(file_name, text, std::ios::trunc);
}

void keep_line(const std::string& file_name, std::string_view line) {
  keep(file_name, line, std::ios::app);
}

void keep_once(const std::string& file_name, std::string_view bytes) {
  std::error_code missing;
  const auto kept = std::filesystem::file_size(path_of(file_name), missing);
  if (missing || kept != bytes.size()) keep_text(file_name, bytes);
}

std::string kept_name(const std::string& name, const std::string& text) {
  return name + "_" + content_key({{"text", text}}).substr(0, 6);
}

}  // namespace tiny_compile
