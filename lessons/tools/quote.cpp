// Where does the definition of a name begin and end? The source is masked first (comments,
// strings and preprocessor lines become blanks, so that every brace left is code), then read scope
// by scope: up to a ';' it is a declaration, up to a matching '}' a definition.
//   "namespace a { int f(int x) { return x; } }"  =>  {f, [14, 40), has a body}
#include "lessons/tools/quote.h"

#include <algorithm>
#include <cctype>

#include "tiny_compile/base/error.h"

namespace tiny_compile::lessons {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

bool starts_with(std::string_view text, size_t at, std::string_view what) {
  return text.substr(at, what.size()) == what;
}

// Where the literal or comment that begins at `i` ends; i itself where none does.
size_t end_of_masked(std::string_view text, size_t i) {
  const auto after = [&](std::string_view what, size_t from) {
    const size_t at = text.find(what, from);
    return at == std::string_view::npos ? text.size() : at + what.size();
  };
  if (starts_with(text, i, "//")) return std::min(text.find('\n', i), text.size());
  if (starts_with(text, i, "/*")) return after("*/", i + 2);
  if (starts_with(text, i, "R\"")) {
    const size_t open = text.find('(', i);
    return after(")" + std::string(text.substr(i + 2, open - i - 2)) + "\"", open);
  }
  const bool digits = i > 0 && is_word(text[i - 1]);  // 1'000
  if (text[i] != '"' && (text[i] != '\'' || digits)) return i;
  size_t end = i + 1;
  while (end < text.size() && text[end] != text[i]) end += text[end] == '\\' ? 2 : 1;
  return std::min(end + 1, text.size());
}

// A preprocessor line ends at the first newline that no backslash precedes.
size_t end_of_directive(std::string_view text, size_t i) {
  while (i < text.size() && !(text[i] == '\n' && text[i - 1] != '\\')) i++;
  return i;
}

std::string masked(std::string_view text) {
  std::string result(text);
  bool line_start = true;
  for (size_t i = 0; i < text.size();) {
    size_t end = line_start && text[i] == '#' ? end_of_directive(text, i) : i;
    if (end == i) end = end_of_masked(text, i);
    for (size_t k = i; k < end; k++) {
      if (result[k] != '\n') result[k] = ' ';
    }
    if (end == i) end++;
    line_start = text[end - 1] == '\n' || (line_start && is_blank(text[end - 1]));
    i = end;
  }
  return result;
}

// After the bracket that closes the one at `open`.
size_t after_bracket(std::string_view code, size_t open) {
  int depth = 0;
  for (size_t i = open; i < code.size(); i++) {
    if (code[i] == '{' || code[i] == '(') depth++;
    if ((code[i] == '}' || code[i] == ')') && --depth == 0) return i + 1;
  }
  return code.size();
}

std::string_view without_template(std::string_view header) {
  if (!starts_with(header, 0, "template")) return header;
  int depth = 0;
  for (size_t i = 8; i < header.size(); i++) {
    if (header[i] == '<') depth++;
    if (header[i] != '>' || --depth > 0) continue;
    header.remove_prefix(i + 1);
    while (!header.empty() && is_blank(header[0])) header.remove_prefix(1);
    return without_template(header);
  }
  return header;
}

// "enum class Op : uint8_t" => "Op"; "" where this declares no type.
std::string type_name(std::string_view header) {
  header = without_template(header);
  size_t i = 0;
  const auto take = [&](std::string_view word) {
    if (!starts_with(header, i, word) ||
        is_word(header[std::min(i + word.size(), header.size() - 1)]))
      return false;
    i += word.size();
    while (i < header.size() && is_blank(header[i])) i++;
    return true;
  };
  if (header.empty()) return "";
  bool is_type = take("enum");
  is_type = take("class") || take("struct") || take("union") || is_type;
  if (!is_type || header.find('(') != header.npos) return "";
  size_t end = i;
  while (end < header.size() && (is_word(header[end]) || header[end] == ':')) end++;
  while (end > i && header[end - 1] == ':') end--;
  return std::string(header.substr(i, end - i));
}

// The first '(' outside template arguments; npos where there is none.
size_t open_parenthesis(std::string_view header) {
  int depth = 0;
  for (size_t i = 0; i < header.size(); i++) {
    if (header[i] == '<') depth++;
    if (header[i] == '>' && depth > 0) depth--;
    if (header[i] == '=' && depth == 0) return header.npos;
    if (header[i] == '(' && depth == 0) return i;
  }
  return header.npos;
}

std::string word_before(std::string_view header, size_t end) {
  while (end > 0 && is_blank(header[end - 1])) end--;
  size_t begin = end;
  while (begin > 0 &&
         (is_word(header[begin - 1]) || header[begin - 1] == ':' || header[begin - 1] == '~'))
    begin--;
  return std::string(header.substr(begin, end - begin));
}

// "inline bool operator==(const A& x)" => "operator=="; "" where there is no such thing.
std::string operator_name(std::string_view header) {
  const size_t at = header.find("operator");
  if (at == header.npos || (at > 0 && is_word(header[at - 1]))) return "";
  size_t begin = at;
  while (begin > 0 && (is_word(header[begin - 1]) || header[begin - 1] == ':')) begin--;
  std::string name;
  for (size_t i = begin; i < header.size() && (header[i] != '(' || name.ends_with("operator"));
       i++) {
    if (!is_blank(header[i])) name += header[i];
  }
  return name;
}

std::string declared_name(std::string_view header) {
  header = without_template(header);
  if (starts_with(header, 0, "using ")) {
    const size_t equals = header.find('=');
    return equals == header.npos ? "" : word_before(header, equals);
  }
  if (const std::string type = type_name(header); !type.empty()) return type;
  if (const std::string name = operator_name(header); !name.empty()) return name;
  if (const size_t open = open_parenthesis(header); open != header.npos)
    return word_before(header, open);
  return word_before(header, std::min({header.find('='), header.find('['), header.size()}));
}

class Reader {
 public:
  explicit Reader(std::string_view source) : source_(source), code_(masked(source)) {}

  std::vector<Definition> read() {
    read_scope(0, code_.size(), "");
    read_macros();
    return std::move(found_);
  }

 private:
  std::string_view header(size_t begin, size_t end) const {
    while (end > begin && is_blank(code_[end - 1])) end--;
    return std::string_view(code_).substr(begin, end - begin);
  }

  // A '{' behind a word of a constructor's initialisers: A() : b{1} { }.
  static bool initialises_member(std::string_view header) {
    const size_t close = header.rfind(')');
    if (close == header.npos || header.empty() || !is_word(header.back())) return false;
    const std::string_view rest = header.substr(close);
    const size_t colon = header.find(") :");
    return colon != header.npos && (rest.find(':') != rest.npos || rest.find(',') != rest.npos);
  }

  void read_scope(size_t begin, size_t end, const std::string& scope) {
    for (size_t i = begin, start = begin; i < end;) {
      if (start == i && (is_blank(code_[i]) || code_[i] == '}' || code_[i] == ';')) {
        start = ++i;
      } else if (code_[i] == '(') {
        i = after_bracket(code_, i);
      } else if (code_[i] == ';') {
        add(start, ++i, scope, false);
        start = i;
      } else if (code_[i] == ':' && is_access(header(start, i))) {
        start = ++i;
      } else if (code_[i] == '{' && initialises_member(header(start, i))) {
        i = after_bracket(code_, i);
      } else if (code_[i] == '{') {
        start = i = read_braces(start, i, scope);
      } else {
        i++;
      }
    }
  }

  static bool is_access(std::string_view text) {
    return text == "public" || text == "private" || text == "protected";
  }

  // The definition whose '{' is at `open`, or the scope; returns where it ends.
  size_t read_braces(size_t start, size_t open, const std::string& scope) {
    const std::string_view text = header(start, open);
    const size_t close = after_bracket(code_, open);
    if (starts_with(text, 0, "namespace") || text == "extern" || text == "inline namespace") {
      read_scope(open + 1, close - 1, scope);
      return close;
    }
    size_t end = close;
    const std::string type = type_name(text);
    const bool is_function =
        type.empty() && (open_parenthesis(text) != text.npos || !operator_name(text).empty());
    const size_t next = code_.find_first_not_of(" \n", close);
    if (!is_function) end = std::min(code_.find(';', close), code_.size() - 1) + 1;
    if (is_function && next != code_.npos && code_[next] == ';') end = next + 1;
    add(start, end, scope, true);
    if (!type.empty() && text.find("enum") == text.npos)
      read_scope(open + 1, close - 1, scope + type + "::");
    return end;
  }

  void add(size_t begin, size_t end, const std::string& scope, bool has_body) {
    const size_t open = std::min({code_.find('{', begin), code_.find(';', begin), end});
    const std::string name = declared_name(header(begin, open));
    if (name.empty()) return;
    const bool is_value = header(begin, end).find('=') != std::string_view::npos;
    found_.push_back(
        {scope + name, with_comment(begin), end_of_line(end), has_body || is_value});
  }

  void read_macros() {
    constexpr std::string_view define = "#define ";
    for (size_t at = source_.find(define); at != source_.npos;
         at = source_.find(define, at + 1)) {
      const size_t name = at + define.size();
      size_t end = name;
      while (end < source_.size() && is_word(source_[end])) end++;
      found_.push_back({std::string(source_.substr(name, end - name)), with_comment(at),
                        end_of_directive(source_, at), true});
    }
  }

  // Includes the lines of // directly above.
  size_t with_comment(size_t begin) const {
    size_t line = line_start(begin);
    while (line > 0) {
      const size_t above = line_start(line - 1);
      const size_t text = source_.find_first_not_of(' ', above);
      if (!starts_with(source_, text, "//") || starts_with(source_, text, "// clang-format"))
        break;
      line = above;
    }
    return line;
  }
  size_t line_start(size_t at) const {
    const size_t newline = at == 0 ? source_.npos : source_.rfind('\n', at - 1);
    return newline == source_.npos ? 0 : newline + 1;
  }
  size_t end_of_line(size_t end) const {
    return std::min(source_.find('\n', end), source_.size());
  }

  std::string_view source_;
  std::string code_;
  std::vector<Definition> found_;
};

std::string without_blanks(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (!is_blank(c)) result += c;
  }
  return result;
}

// "print(const Graph& graph)" names the definition whose text has that signature.
bool is_called(const Definition& definition, std::string_view source, const std::string& name) {
  const std::string plain = name.substr(0, name.find('('));
  if (definition.name != plain && !definition.name.ends_with("::" + plain)) return false;
  if (plain == name) return true;
  const std::string text =
      without_blanks(source.substr(definition.begin, definition.end - definition.begin));
  return text.find(without_blanks(name)) != text.npos;
}

// Of what `keep` likes, if there is any; else all.
template <typename Keep>
std::vector<Definition> preferred(const std::vector<Definition>& all, const Keep& keep) {
  std::vector<Definition> kept;
  for (const Definition& definition : all) {
    if (keep(definition)) kept.push_back(definition);
  }
  return kept.empty() ? all : kept;
}

std::string dedented(const std::string& text) {
  const size_t margin = std::min(text.find_first_not_of(' '), text.size());
  std::string result;
  for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    size_t from = begin;
    while (from < end && from - begin < margin && text[from] == ' ') from++;
    result += text.substr(from, end - from) + "\n";
  }
  return result;
}

}  // namespace

std::vector<Definition> find_definitions(std::string_view source) {
  return Reader(source).read();
}

std::string quote(const std::string& path, const std::string& source, const std::string& name) {
  const std::vector<Definition> all = find_definitions(source);
  std::vector<Definition> found;
  for (const Definition& definition : all) {
    if (is_called(definition, source, name)) found.push_back(definition);
  }
  found = preferred(found, [&](const Definition& d) { return d.name == name; });
  found = preferred(found, [](const Definition& d) { return d.has_body; });
  if (found.empty()) {
    std::vector<std::string> names;
    for (const Definition& definition : all) names.push_back(definition.name);
    fail(path, " defines no '", name, "'; it has ", join(names, ", "));
  }
  if (found.size() > 1)
    fail(path, " defines '", name, "' ", found.size(),
         " times; write the beginning of the one signature, up to a parameter that tells it "
         "apart");
  return dedented(source.substr(found[0].begin, found[0].end - found[0].begin));
}

}  // namespace tiny_compile::lessons
