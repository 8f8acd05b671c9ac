// Tokens by one regular expression for each language: the name of a group is the class of what it matches.

const rule = (...parts) => new RegExp(parts.map(([name, pattern]) => `(?<${name}>${pattern})`).join("|"), "g");
const STRING = '"(?:[^"\\\\]|\\\\.)*"';
const NUMBER = "(?<![\\w%$#.])-?(?:0x[0-9a-fA-F]+|\\d+(?:\\.\\d+)?(?:e[+-]?\\d+)?)\\b";

const LANGUAGES = {
  python: rule(["c", "#.*"], ["s", `${STRING}|'(?:[^'\\\\]|\\\\.)*'`], ["a", "@[\\w.]+"],
    ["k", "\\b(?:def|for|in|if|elif|else|while|return|and|or|not|is|None|True|False|import|from|as|with|class|lambda|pass|assert|break|continue)\\b"],
    ["f", "[A-Za-z_]\\w*(?=\\()"], ["n", NUMBER]),
  mlir: rule(["c", "//.*"], ["f", '"(?:tt|ttg|ttng|scf|arith)\\.[\\w.]+"'], ["s", STRING], ["v", "%[\\w$.#]+"], ["a", "#[\\w.]+"],
    ["k", "\\b(?:scf\\.(?:for|if|while|yield)|tt\\.(?:func|return)|module|iter_args|else|to|step)\\b"],
    ["f", "\\b(?:tt|ttg|ttng|arith|math|scf|cf)\\.[\\w.]+"], ["t", "!?\\b(?:tt\\.ptr|tensor|memdesc|index|bf16|[if]\\d+|\\d[\\dx]*x(?:bf16|[if]\\d+))\\b"],
    ["n", NUMBER]),
  llvm: rule(["c", ";.*"], ["s", STRING], ["v", "%[\\w$.]+"], ["f", "@[\\w$.]+"], ["a", "[!#]\\w+"], ["t", "\\b(?:i\\d+|float|double|half|bfloat|ptr|void)\\b"],
    ["k", "\\b(?:define|declare|call|br|ret|phi|load|store|getelementptr|select|icmp|fcmp|label|asm|sideeffect|tail|internal)\\b"], ["n", NUMBER]),
  ptx: rule(["c", "//.*"], ["s", STRING], ["v", "%[\\w$.]+"], ["a", "(?:^|\\s)\\.[\\w]+"],
    ["k", "\\b(?:wgmma|mma|mbarrier|bar|barrier|fence|membar|cp)\\.[\\w.:]+"], ["f", "\\b[a-z][a-z0-9_]*(?:[.:]{1,2}\\w+)+"], ["t", "\\$L\\w+"], ["n", NUMBER]),
  sass: rule(["c", "//.*|/\\*.*?\\*/"], ["v", "\\b(?:UR|R|UP|P)\\d+\\b|\\b(?:RZ|PT|URZ|UPT)\\b"], ["f", "\\b[A-Z][A-Z0-9_]{2,}(?:\\.\\w+)*"], ["n", NUMBER]),
  asm: rule(["c", "#.*"], ["s", STRING], ["v", "%[\\w]+"], ["a", "^\\s*\\.[\\w.]+"], ["t", "\\.L\\w+|^[\\w.$]+:"], ["f", "^\\s+[a-z]\\w*"], ["n", "\\$?-?\\d\\w*"]),
};
const MOST = 500; // characters of a line that are drawn: inline assembly has lines of thousands

function highlighted(text, language, into) {
  const shown = text.length > MOST ? text.slice(0, MOST) : text;
  let end = 0;
  for (const match of shown.matchAll(LANGUAGES[language])) {
    const [kind, token] = Object.entries(match.groups).find(([, found]) => found !== undefined);
    if (match.index > end) into.append(shown.slice(end, match.index));
    into.append(element("span", kind, token));
    end = match.index + token.length;
  }
  into.append(shown.slice(end));
  if (shown.length < text.length) into.append(element("span", "c", ` … ${text.length - MOST} more characters`));
}

function element(tag, className = "", content = undefined) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (content !== undefined) made.append(...[].concat(content));
  return made;
}
