// Reads the messages of the pages: flat files with `{name}` for values. A language is a folder of views/locales, named by
// its tag; the files in it are for everybody, those in its folder `console` for administrators.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { canonicalTag, type Languages, matchLanguage } from '../../http/languages.ts';
import { FALLBACK, languagesIn } from '../../tenant/languages.ts';

/** A message, or one per plural category (CLDR), chosen by the value `count`. */
export type Message = string | Readonly<Record<string, string>>;

export type MessageValues = Readonly<Record<string, unknown>>;

export interface Locale {
  /** The name of its folder: an RFC 5646 tag. */
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

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Checked by hand: a schema takes many times as long for so many messages, at every start. */
function isMessages(read: unknown): read is Record<string, Message> {
  const isMessage = (one: unknown): boolean =>
    typeof one === 'string' ||
    (isObject(one) && Object.values(one).every((form) => typeof form === 'string'));
  return isObject(read) && Object.values(read).every(isMessage);
}

type Messages = Readonly<Record<string, Message>>;

type Find = (key: string) => Message | undefined;

/**
 * Lists the locales of a directory. Only the names of the folders are read now, and a part of a language with its first
 * message: each takes memory, and all would take a tenth of the time of a start.
 * @throws Error when English is missing, and, with the first message of a part, when one of its files is malformed.
 */
export function readLocales(directory: string): ReadonlyMap<string, Locale> {
  const english = messagesOf(join(directory, FALLBACK));
  return new Map(
    languagesIn(directory).map((tag) => [
      tag,
      createLocale(tag, tag === FALLBACK ? english : messagesOf(join(directory, tag)), english),
    ]),
  );
}

/** The beginning of the keys of the console. */
const CONSOLE = 'console.';

function messagesOf(folder: string): Find {
  const everybody = readOnce(folder);
  const console = readOnce(join(folder, 'console'));
  return (key) => {
    const messages = key.startsWith(CONSOLE) ? console() : everybody();
    return Object.hasOwn(messages, key) ? messages[key] : undefined;
  };
}

/** Returns a function that gives the messages of the files in a folder, and reads them at the first call. */
function readOnce(folder: string): () => Messages {
  let read: Messages | undefined;
  return () => {
    read ??= readMessages(folder);
    return read;
  };
}

/** Reads and merges the messages of a folder; there are none if it does not exist. @throws Error when a file is malformed. */
function readMessages(folder: string): Messages {
  const all: Record<string, Message> = {};
  const files = existsSync(folder) ? readdirSync(folder).filter((one) => one.endsWith('.json')) : [];
  for (const file of files.map((name) => join(folder, name))) {
    const read: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (!isMessages(read)) throw new Error(`${file} is no list of messages`);
    Object.assign(all, read);
  }
  return all;
}

function createLocale(tag: string, own: Find, english: Find): Locale {
  const direction = directionOf(tag);
  return {
    tag,
    canonicalTag: canonicalTag(tag) ?? tag,
    direction,
    has: (key) => (own(key) ?? english(key)) !== undefined,
    isTranslated: (key) => own(key) !== undefined,
    text: (key, values = {}) => {
      const translated = own(key);
      const message = translated ?? english(key);
      if (message === undefined) throw new Error(`no locale has the message ${key}`);
      const form = pluralForm(message, translated === undefined ? FALLBACK : tag, values);
      return fillIn(form, values, direction);
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

function pluralForm(message: Message, tag: string, values: MessageValues): string {
  if (typeof message === 'string') return message;
  const category = new Intl.PluralRules([tag, FALLBACK]).select(Number(values.count));
  return message[category] ?? message.other ?? '';
}

const RTL_LETTER = /\p{Script=Arabic}|\p{Script=Hebrew}/u;

function fillIn(message: string, values: MessageValues, direction: Locale['direction']): string {
  return message.replace(/\{(\w+)\}/g, (_place, name: string) => {
    const text = String(values[name] ?? '');
    // Isolates values that may be of the other direction and would reorder the sentence (Unicode UAX #9).
    const isForeign = direction === 'rtl' || RTL_LETTER.test(text);
    return isForeign ? `\u2068${text}\u2069` : text;
  });
}

/**
 * Returns the locale for a request: the best match among the tenant's enabled locales, else the tenant's first, else
 * English.
 * @param enabled the tenant's locales, the default first.
 */
export function chooseLocale(
  locales: ReadonlyMap<string, Locale>,
  enabled: readonly string[],
  languages: Languages,
): Locale {
  const available = enabled.flatMap((tag) => locales.get(tag) ?? []);
  // Of two with the same canonical tag the first counts.
  const byTag = new Map(available.toReversed().map((locale) => [locale.canonicalTag, locale]));
  const locale = matchLanguage(languages, byTag) ?? available[0] ?? locales.get(FALLBACK);
  if (locale === undefined) throw new Error('there are no locales');
  return locale;
}
