// YAML and JSON of plain data, in which every value is read back as it was: by every reader of YAML, whichever of its versions
// it follows, and by tools that replace marks in the text before they parse it.
// docs/understand/decisions/moving.md#what-move-out-writes-is-read-by-the-deploy-tool-and-by-gatehouse-alike

/** Words and names that no reader takes for anything but text: no date, number, mark, tag or indicator (YAML 1.2 §7.3.3). */
const PLAIN = /^[A-Za-z][A-Za-z0-9_./+-]*(?: [A-Za-z0-9_./+-]+)*$/;

/** What readers of YAML take for `true`, `false` or `null` (YAML 1.1, types bool and null), and for the key that merges maps. */
const WORDS = /^(?:y|n|yes|no|on|off|true|false|null)$/i;

/** Characters that YAML forbids unescaped (YAML 1.2 §5.1), that end a line in some readers, or that nobody sees. */
const UNSEEN =
  /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ud800-\udfff\ufdd0-\ufdef\ufeff\ufff0-\uffff]/g;

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/**
 * Returns JSON in which no mark of a variable is left: the deploy tool replaces `##NAME##` and `@@NAME@@` in the text, and would
 * put the caller's environment into what somebody has stored.
 */
const unmarked = (json: string): string =>
  json
    .replaceAll(/#(?=#)|@(?=@)/g, escaped)
    .replaceAll(/[\ud800-\udbff][\udc00-\udfff]|[^\u0020-\u007e]/g, (found) =>
      found.length === 2 ? found : found.replaceAll(UNSEEN, escaped),
    );

/** Returns a value as JSON on one line. */
const scalar = (value: unknown): string =>
  typeof value === 'string' && PLAIN.test(value) && !WORDS.test(value)
    ? value
    : unmarked(JSON.stringify(value) ?? 'null');

export const jsonText = (value: unknown): string => `${unmarked(JSON.stringify(value, undefined, 2))}\n`;

/** @returns YAML, which ends with a line feed. Members are in the order in which they are. */
export function yamlText(value: object): string {
  return `${linesOf(value, '').join('\n')}\n`;
}

/** The longest key that stands before its value on one line (YAML 1.2 §7.4.2). */
const MAX_KEY = 1_000;

function linesOf(value: object, indent: string): string[] {
  const deeper = `${indent}  `;
  if (Array.isArray(value))
    return value.flatMap((item: unknown) => {
      const [first = '', ...rest] = isNested(item) ? linesOf(item, deeper) : [`${deeper}${flat(item)}`];
      return [`${indent}- ${first.slice(deeper.length)}`, ...rest];
    });
  return Object.entries(value).flatMap(([name, member]: [string, unknown]) => {
    if (member === undefined) return [];
    const key = scalar(name);
    const before = key.length > MAX_KEY ? [`${indent}? ${key}`] : [];
    const start = key.length > MAX_KEY ? `${indent}:` : `${indent}${key}:`;
    return isNested(member)
      ? [...before, start, ...linesOf(member, deeper)]
      : [...before, `${start} ${flat(member)}`];
  });
}

/** Whether a value has lines of its own: a list or an object with something in it. */
const isNested = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && Object.values(value).some((one) => one !== undefined);

const flat = (value: unknown): string =>
  Array.isArray(value) ? '[]' : typeof value === 'object' && value !== null ? '{}' : scalar(value);
