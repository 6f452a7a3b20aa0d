// Reads the messages of the pages: flat files of ICU messages. A language is a folder of views/locales, named by its tag;
// the files in it are for everybody, those in a folder of it (`console`, `development`) for those whom its pages are for.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Formatters, IntlMessageFormat } from 'intl-messageformat';
import {
  baseTag,
  byCanonicalTag,
  canonicalTag,
  isSameLanguage,
  type Languages,
  matchLanguage,
  nearestTag,
} from '../../http/languages.ts';
import { FALLBACK, isTag, languagesIn } from '../../tenant/languages.ts';

export type MessageValues = Readonly<Record<string, unknown>>;

export interface Locale {
  /** An RFC 5646 tag: the name of its folder, or the tenant's tag of the same language. */
  tag: string;
  /** The tag by which requests are matched. */
  canonicalTag: string;
  direction: 'ltr' | 'rtl';
  /** @throws Error when neither the locale nor English has the key. */
  text(key: string, values?: MessageValues): string;
  /** Reports whether the locale or English has a key. */
  has(key: string): boolean;
  /** Reports whether the locale itself has a key, so that its message is not English in place of it. */
  isTranslated(key: string): boolean;
}

/** Checked by hand: a schema takes many times as long for so many messages. */
function isMessages(read: unknown): read is Messages {
  const isObject = typeof read === 'object' && read !== null && !Array.isArray(read);
  return isObject && Object.values(read).every((message) => typeof message === 'string');
}

type Messages = Readonly<Record<string, string>>;

type Find = (key: string) => string | undefined;

// docs/understand/decisions/login-pages.md#one-language-is-read-when-somebody-first-needs-it
/**
 * Lists the locales of a directory. Only the names of the folders are read now, and a part of a language with its first
 * message: each takes memory, and all would take a large part of the time of a start.
 * @throws Error when English is missing, and, with the first message of a part, when one of its files is malformed.
 */
export function readLocales(directory: string): ReadonlyMap<string, Locale> {
  const tags = languagesIn(directory);
  const own = new Map(tags.map((tag) => [tag, messagesOf(join(directory, tag))]));
  const canonical = byCanonicalTag(tags);
  const english = own.get(FALLBACK) ?? (() => undefined);
  const withBase = (tag: string): Find => {
    const find = own.get(tag) ?? (() => undefined);
    // Found with the first message that is missing, which most languages never have.
    const base = once(() => {
      const found = canonical.get(baseTag(canonicalTag(tag) ?? tag, canonical.keys()) ?? '');
      return found === undefined || found === FALLBACK ? () => undefined : withBase(found);
    });
    return (key) => find(key) ?? base()(key);
  };
  return new Map(
    tags.map((tag) => [tag, createLocale(tag, tag === FALLBACK ? english : withBase(tag), english)]),
  );
}

/** Returns a function that makes a value with the first call. */
function once<T extends object>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/**
 * Returns the messages of a language. A key that begins with the name of a folder of it, such as `console.`, is in the
 * files there, and any other in the files beside the folders.
 */
function messagesOf(folder: string): Find {
  const everybody = once(() => readMessages(folder));
  const parts = new Map<string, () => Messages>(
    PARTS.map((part) => [part, once(() => readMessages(join(folder, part)))]),
  );
  return (key) => {
    const messages = (parts.get(key.slice(0, key.indexOf('.'))) ?? everybody)();
    return Object.hasOwn(messages, key) ? messages[key] : undefined;
  };
}

/** The folders of a language: what its keys begin with. */
export const PARTS = ['console', 'development'] as const;

/** Reads and merges the messages of a folder; there are none if it does not exist. @throws Error when a file is malformed. */
function readMessages(folder: string): Messages {
  const all: Record<string, string> = {};
  const files = existsSync(folder) ? readdirSync(folder).filter((one) => one.endsWith('.json')) : [];
  for (const file of files.map((name) => join(folder, name))) {
    const read: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (!isMessages(read)) throw new Error(`${file} is no list of messages`);
    Object.assign(all, read);
  }
  return all;
}

function createLocale(tag: string, own: Find, english: Find): Locale {
  const direction = once(() => ({ is: directionOf(tag) }));
  const format = formatter(tag, direction);
  const formatEnglish = tag === FALLBACK ? format : formatter(FALLBACK, direction);
  return {
    tag,
    canonicalTag: canonicalTag(tag) ?? tag,
    get direction() {
      return direction().is;
    },
    has: (key) => (own(key) ?? english(key)) !== undefined,
    isTranslated: (key) => own(key) !== undefined,
    text: (key, values = {}) => {
      const translated = own(key);
      const message = translated ?? english(key);
      if (message === undefined) throw new Error(`no locale has the message ${key}`);
      return (translated === undefined ? formatEnglish : format)(message, values);
    },
  };
}

/** `Intl.Locale` with the two forms of a member that Node.js 22 and 24 have, and the compiler does not know yet. */
interface WithDirection {
  getTextInfo?(): { direction: Locale['direction'] };
  textInfo?: { direction: Locale['direction'] };
}

/** Returns the writing direction of a language's script. */
function directionOf(tag: string): Locale['direction'] {
  const locale = new Intl.Locale(tag) as WithDirection;
  return (locale.getTextInfo?.() ?? locale.textInfo)?.direction ?? 'ltr';
}

// docs/understand/decisions/login-pages.md#messages-are-icu-messages-of-which-few-are-parsed
/** What more than a value alone (`{name}`) is in a message: a choice, a formatted number, or quoting. */
const MORE = /\{(?!\w+\})|'/;

const VALUE = /\{(\w+)\}/g;

/** Code points written from right to left, in the blocks kept for them (Unicode DerivedBidiClass), and the mark of that direction. */
const RIGHT_TO_LEFT =
  /[\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufefe\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** What begins and ends embeddings, overrides and isolates (UAX #9 §2). */
const BIDI_CONTROL = /[\u202a-\u202e\u2066-\u2069]/g;

/**
 * Isolates a value that may be of the other direction, and would reorder the sentence around it (Unicode UAX #9). Its own controls
 * are left out: by them a name would reverse the address after it, or end the isolate.
 */
export function isolated(value: string, direction: Locale['direction']): string {
  const plain = value.replace(BIDI_CONTROL, '');
  return direction === 'rtl' || RIGHT_TO_LEFT.test(plain) ? `\u2068${plain}\u2069` : plain;
}

/** Returns the library, which is loaded when the first message is parsed, not at each start. */
const library = () =>
  createRequire(import.meta.url)('intl-messageformat') as typeof import('intl-messageformat');

/**
 * Returns a function that fills in the messages of a language. A message with values alone, as nearly all are, is not parsed:
 * what parsing makes of a message takes ten times its memory.
 */
function formatter(tag: string, direction: () => { is: Locale['direction'] }) {
  const parsed = new Map<string, IntlMessageFormat>();
  const formatters = formattersOf([tag, FALLBACK]);
  const parse = (message: string) => {
    const { IntlMessageFormat: Parsed } = library();
    const made = new Parsed(message, [tag, FALLBACK], undefined, { ignoreTag: true, formatters });
    parsed.set(message, made);
    return made;
  };
  return (message: string, values: MessageValues): string => {
    if (!MORE.test(message))
      return message.replace(VALUE, (_place, name: string) =>
        isolated(String(values[name] ?? ''), direction().is),
      );
    const parts = (parsed.get(message) ?? parse(message)).formatToParts<{ toString(): string }>(
      Object.fromEntries(Object.entries(values).map(([name, value]) => [name, argument(value)])),
    );
    return parts
      .map(({ value }) => (typeof value === 'string' ? value : isolated(String(value), direction().is)))
      .join('');
  };
}

/** Returns what the messages of a language share: by itself each message would make its own, which takes memory outside the heap. */
function formattersOf(tags: string[]): Formatters {
  const cardinal = once(() => new Intl.PluralRules(tags));
  const plain = once(() => new Intl.NumberFormat(tags));
  return {
    getNumberFormat: (_tags, style) =>
      style === undefined ? plain() : new Intl.NumberFormat(tags, style as Intl.NumberFormatOptions),
    getDateTimeFormat: (_tags, style) => new Intl.DateTimeFormat(tags, style),
    getPluralRules: (_tags, style) =>
      style?.type === 'ordinal' ? new Intl.PluralRules(tags, style) : cardinal(),
  };
}

/** Returns a value so that it is told from the text around it, and still selects the form of its name. */
const argument = (value: unknown) =>
  typeof value === 'number' ? value : { toString: () => String(value ?? '') };

/**
 * Returns the locale for a request: the best match among the tenant's enabled locales, else the tenant's first, else
 * English.
 * @param enabled the tenant's locales, the default first. One that we do not have is served by the nearest one.
 */
export function chooseLocale(
  locales: ReadonlyMap<string, Locale>,
  enabled: readonly string[],
  languages: Languages,
): Locale {
  const byTag = new Map<string, Locale>();
  for (const tag of enabled) {
    const locale = locales.get(tag) ?? servedBy(locales, tag);
    // Of two with the same canonical tag the first counts.
    if (locale !== undefined && !byTag.has(locale.canonicalTag)) byTag.set(locale.canonicalTag, locale);
  }
  const [first] = byTag.values();
  const locale = matchLanguage(languages, byTag) ?? first ?? locales.get(FALLBACK);
  if (locale === undefined) throw new Error('there are no locales');
  return locale;
}

/**
 * Returns the locale for a tag that is the name of none: the nearest one. If it is of the same language, it gets the tag,
 * whose custom texts, dates and numbers it then has: `es-AR` with the messages of `es-419`.
 */
function servedBy(locales: ReadonlyMap<string, Locale>, tag: string): Locale | undefined {
  const wanted = canonicalTag(tag);
  const byTag = byCanonicalTag([...locales.keys()]);
  const found = wanted === undefined ? undefined : byTag.get(nearestTag(wanted, byTag) ?? '');
  const locale = found === undefined ? undefined : locales.get(found);
  if (locale === undefined || wanted === undefined) return undefined;
  if (!isSameLanguage(wanted, locale.canonicalTag)) return locale;
  // A malformed end, which the canonical tag lacks, would make `Intl` and the response's headers throw.
  return { ...locale, tag: isTag(tag) ? tag : wanted, canonicalTag: wanted };
}
