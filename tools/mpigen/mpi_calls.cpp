// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>

#include "mpi_calls.hpp"
#include "source_tokens.hpp"

namespace tool {

using namespace heddle;

namespace {

/// Whether a word is the name of an MPI function: a capital letter, then a small one.
bool names_function(std::string_view word) {
  constexpr std::array<std::string_view, 17> types = {
      "MPI_Aint",    "MPI_Comm",    "MPI_Count",  "MPI_Datatype", "MPI_Errhandler", "MPI_Fint",
      "MPI_File",    "MPI_Group",   "MPI_Info",   "MPI_Message",  "MPI_Offset",     "MPI_Op",
      "MPI_Request", "MPI_Session", "MPI_Status", "MPI_Win",      "MPI_F08_status"};
  if (!word.starts_with("MPI_") || word.size() < 6) return false;
  const bool tool = word.starts_with("MPI_T_");  // as MPI_T_init_thread
  return ((is_upper(word[4]) && is_lower(word[5])) ||
          (tool && word.size() > 6 && is_lower(word[6]))) &&
         std::ranges::find(types, word) == types.end();
}

/// Whether a call may follow the word: another one in front of a name makes it a declaration.
bool before_call(std::string_view word) {
  constexpr std::array<std::string_view, 12> words = {"return", "else",      "do",       "case",
                                                      "throw",  "co_return", "co_await", "co_yield",
                                                      "not",    "and",       "or",       "sizeof"};
  return std::ranges::find(words, word) != words.end();
}

/// The tokens of a source, and its calls.
class Calls {
 public:
  explicit Calls(std::string_view source) : m_source(source), m_tokens(Lexer(source).run()) {}

  /// Calls `found(begin, end)` for each call, from its name to behind its parenthesis.
  template <class Found>
  void each(Found&& found) const {
    std::size_t before = m_tokens.size();  // the last token that is no blank
    for (std::size_t t = 0; t < m_tokens.size(); ++t) {
      if (passes(m_tokens[t])) continue;
      const std::size_t last = std::exchange(before, t);
      if (!is_name(t, last)) continue;
      const std::size_t close = closing(t + 1);
      if (close == m_tokens.size()) continue;
      found(m_tokens[t].begin, m_tokens[close].end);
      before = t = close;
    }
  }

 private:
  [[nodiscard]] std::string_view text_of(std::size_t t) const {
    return m_source.substr(m_tokens[t].begin, m_tokens[t].end - m_tokens[t].begin);
  }
  [[nodiscard]] bool is_name(std::size_t t, std::size_t last) const {
    if (m_tokens[t].is != Token::Is::word || !names_function(text_of(t))) return false;
    return last == m_tokens.size() || m_tokens[last].is != Token::Is::word ||
           before_call(text_of(last));
  }
  /// The token that closes the parenthesis which is next from `t` on; their number if there is
  /// none.
  [[nodiscard]] std::size_t closing(std::size_t t) const {
    while (t < m_tokens.size() && passes(m_tokens[t])) ++t;
    if (t == m_tokens.size() || text_of(t) != "(") return m_tokens.size();
    std::size_t depth = 0;
    for (; t < m_tokens.size(); ++t) {
      if (m_tokens[t].is != Token::Is::mark) continue;
      if (text_of(t) == "(") ++depth;
      if (text_of(t) == ")" && --depth == 0) return t;
    }
    return t;
  }

  std::string_view m_source;
  std::vector<Token> m_tokens;
};

/// The end of the line where the statement ends whose call ends at `end`, if nothing but a comment
/// follows it there; else `none`.
std::size_t statement_end(std::string_view source, std::size_t end) {
  while (end < source.size() && is_blank(source[end])) ++end;
  if (end == source.size() || source[end] != ';') return none;
  const std::size_t stop = source.find('\n', end);
  if (stop == none) return none;
  for (const Token& token : Lexer(source.substr(end + 1, stop - end - 1)).run()) {
    if (!passes(token)) return none;
    const std::string_view found = source.substr(end + 1 + token.begin, token.end - token.begin);
    if (found.starts_with("/*") && !found.ends_with("*/")) return none;
    if (found.starts_with("//") && found.find_last_not_of('\r') != none &&
        found[found.find_last_not_of('\r')] == '\\')
      return none;
  }
  return stop;
}

/// Returns `raw` as one line of a list of calls, which read_list() reads back. printable() is for
/// terminals: it does not escape backslashes, so its text cannot be read back.
std::string escaped(std::string_view raw) {
  std::string out;
  for (const char c : raw) {
    if (c == '\n')
      out += "\\n";
    else if (c == '\\')
      out += "\\\\";
    else
      out += c;
  }
  return out;
}

/// What a score is about.
struct Parsed {
  std::size_t line;
  std::string function;
  std::vector<std::string> arguments;
};

std::vector<Parsed> parsed(std::vector<MpiCall> calls) {
  std::ranges::stable_sort(calls, {},
                           [](const MpiCall& call) { return std::pair(call.line, call.column); });
  std::vector<Parsed> all;
  for (const MpiCall& call : calls)
    all.push_back({call.line, function_of(call), arguments_of(call)});
  return all;
}

/// Calls `found(a, b)` for the most pairs of `a` and `b`, both in the order of their lines, that
/// are no further apart than the tolerance.
template <class Found>
void pairs_of(const std::vector<const Parsed*>& a, const std::vector<const Parsed*>& b,
              std::size_t tolerance, Found&& found) {
  for (std::size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    if (a[i]->line + tolerance < b[k]->line)
      ++i;
    else if (b[k]->line + tolerance < a[i]->line)
      ++k;
    else
      found(*a[i++], *b[k++]);
  }
}

}  // namespace

Stripped strip(std::string_view source) {
  Stripped out;
  std::size_t copied = 0, line = 1, line_begin = 0;
  Calls(source).each([&](std::size_t begin, std::size_t end) {
    for (std::size_t at = line_begin; (at = source.find('\n', at)) < begin;) {
      ++line;
      line_begin = ++at;
    }
    const std::size_t stop = statement_end(source, end);
    const bool alone = stop != none && line_begin >= copied &&
                       std::ranges::all_of(source.substr(line_begin, begin - line_begin), is_blank);
    if (alone) {
      begin = line_begin;
      end = stop + 1;
    }
    out.source += source.substr(copied, begin - copied);
    out.calls.push_back({line, alone ? 0 : begin - line_begin + 1,
                         std::string(source.substr(begin, end - begin - (alone ? 1 : 0)))});
    copied = end;
  });
  out.source += source.substr(copied);
  return out;
}

std::string insert(const Stripped& stripped) {
  std::vector<MpiCall> calls = stripped.calls;
  std::ranges::stable_sort(calls, {},
                           [](const MpiCall& call) { return std::pair(call.line, call.column); });
  std::string out;
  std::size_t taken = 0, line = 1, line_begin = 0;  // in `out`
  const auto add = [&](char c) {
    out += c;
    if (c != '\n') return;
    ++line;
    line_begin = out.size();
  };
  for (const MpiCall& call : calls) {
    const std::size_t column = std::max<std::size_t>(call.column, 1);
    const auto short_of = [&] {
      return std::pair(line, out.size() - line_begin + 1) < std::pair(call.line, column);
    };
    while (short_of() && taken < stripped.source.size()) add(stripped.source[taken++]);
    expects(line == call.line && out.size() - line_begin + 1 == column, [&] {
      return ErrorInfo{"mpigen insert",
                       short_of() ? "a call stands beyond the source"
                                  : "a call stands within another one, or beyond its line",
                       text("line ", call.line, ", column ", column, ": ", function_of(call)),
                       "give the line and column in the source with all calls"};
    });
    for (const char c : call.text) add(c);
    if (call.column == 0) add('\n');
  }
  return out += std::string_view(stripped.source).substr(taken);
}

std::string to_list(const std::vector<MpiCall>& calls) {
  std::string out;
  for (const MpiCall& call : calls)
    out += text(call.line, call.column == 0 ? "" : text(':', call.column), ", ", escaped(call.text),
                '\n');
  return out;
}

std::vector<MpiCall> read_list(std::string_view list, const std::string& where) {
  std::vector<MpiCall> calls;
  list = heddle::impl::without_mark(list);
  for (std::size_t at = 0, number = 1; at < list.size(); ++number) {
    const std::size_t stop = std::min(list.find('\n', at), list.size());
    const std::string_view row = list.substr(at, stop - at);
    at = stop + 1;
    MpiCall call;
    const char* place = row.data();
    const char* const end = row.data() + row.size();
    const auto read = [&](std::size_t& value) {
      const auto [next, error] = std::from_chars(place, end, value);
      const bool good = error == std::errc{} && value >= 1;
      place = next;
      return good;
    };
    bool good = read(call.line);
    if (good && place != end && *place == ':') {
      ++place;
      good = read(call.column);
    }
    good = good && end - place >= 2 && place[0] == ',' && place[1] == ' ';
    for (place += good ? 2 : 0; good && place != end; ++place) {
      if (*place != '\\') {
        call.text += *place;
        continue;
      }
      good = ++place != end && (*place == 'n' || *place == '\\');
      if (!good) break;
      call.text += *place == 'n' ? '\n' : '\\';
    }
    good = good && !function_of(call).empty();
    if (!good)
      throw format_error({where, "a line is not 'LINE, CALL' or 'LINE:COLUMN, CALL'",
                          text("line ", number, ": '", row, "'"),
                          "numbers begin at 1; a line feed in a call is written \\n"});
    calls.push_back(std::move(call));
  }
  return calls;
}

std::string function_of(const MpiCall& call) {
  for (const Token& token : Lexer(call.text).run())
    if (const std::string word = call.text.substr(token.begin, token.end - token.begin);
        token.is == Token::Is::word && names_function(word))
      return word;
  return {};
}

std::vector<std::string> arguments_of(const MpiCall& call) {
  std::vector<std::string> arguments;
  std::size_t depth = 0;
  bool named = false, any = false;
  for (const Token& token : Lexer(call.text).run()) {
    const std::string word = call.text.substr(token.begin, token.end - token.begin);
    if (passes(token)) continue;
    if (!named) {
      named = token.is == Token::Is::word && names_function(word);
      continue;
    }
    const bool closes = word == ")" || word == "]" || word == "}";
    if (closes && --depth == 0) break;
    if (depth == 1 && word == ",") {
      arguments.emplace_back();
    } else if (depth > 0) {
      if (!any) arguments.emplace_back();
      arguments.back() += word;
    }
    any = any || depth > 0;
    if (word == "(" || word == "[" || word == "{") ++depth;
  }
  return arguments;
}

CallScore score(std::vector<MpiCall> truth, std::vector<MpiCall> predicted, std::size_t tolerance) {
  expects(!truth.empty() || !predicted.empty(), [] {
    return ErrorInfo{"mpigen score", "both lists are empty", "there is nothing to compare",
                     "give the true list of a program that calls MPI"};
  });
  const std::vector<Parsed> a = parsed(std::move(truth)), b = parsed(std::move(predicted));
  CallScore result{.truth = a.size(), .predicted = b.size()};
  std::vector<const Parsed*> all_a, all_b;
  std::map<std::string, std::pair<std::vector<const Parsed*>, std::vector<const Parsed*>>> by_name;
  for (const Parsed& call : a) {
    all_a.push_back(&call);
    by_name[call.function].first.push_back(&call);
  }
  for (const Parsed& call : b) {
    all_b.push_back(&call);
    by_name[call.function].second.push_back(&call);
  }
  pairs_of(all_a, all_b, tolerance, [&](const Parsed&, const Parsed&) { ++result.located; });
  for (const auto& [name, calls] : by_name)
    pairs_of(calls.first, calls.second, tolerance, [&](const Parsed& one, const Parsed& other) {
      ++result.named;
      const std::size_t least = std::min(one.arguments.size(), other.arguments.size());
      result.arguments += std::max(one.arguments.size(), other.arguments.size());
      for (std::size_t i = 0; i < least; ++i)
        result.equal += one.arguments[i] == other.arguments[i];
    });
  return result;
}

}  // namespace tool
