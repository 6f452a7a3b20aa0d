// Reads the messages of the pages. Each locale has flat files with `{name}` for values: views/locales/<tag>.json, and
// for the console views/locales/console/<area>/<tag>.json.
import { readdirSync, readFileSync } from 'node:fs';
import { join, parse } from 'node:path';
import { type Languages, matchLanguage } from '../../http/languages.ts';

/** A message, or one per plural category (CLDR), chosen by the value `count`. */
export type Message = string | Readonly<Record<string, string>>;

/** The values that replace `{name}` in a message. */
export type MessageValues = Readonly<Record<string, unknown>>;

export interface Locale {
  /** RFC 5646 tag. */
  tag: string;
  direction: 'ltr' | 'rtl';
  /** Returns the message of a key. @throws Error when neither the locale nor English has the key. */
  text(key: string, values?: MessageValues): string;
  /** Reports whether the locale or English has a key. */
  has(key: string): boolean;
}

/** The locale that has every message. It stands in where another one lacks a message. */
const FALLBACK = 'en';

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

/**
 * Lists the locales of a directory. The files of a locale are only read with its first message: reading all took a
 * tenth of the time of a start.
 * @throws Error when English is missing, and, with the first message of a locale, when one of its files is malformed.
 */
export function readLocales(directory: string): ReadonlyMap<string, Locale> {
  const files = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((one) =>
    one.endsWith('.json'),
  );
  const messages = new Map(
    [...Map.groupBy(files.sort(), (file) => parse(file).name)].map(([tag, own]) => [
      tag,
      messagesOf(own.map((file) => join(directory, file))),
    ]),
  );
  const fallback = messages.get(FALLBACK);
  if (fallback === undefined) throw new Error(`${directory} has no ${FALLBACK}.json`);
  return new Map([...messages].map(([tag, own]) => [tag, createLocale(tag, own, fallback)]));
}

/** Returns a function that gives the messages of some files, reading them at the first call. */
function messagesOf(files: readonly string[]): () => Messages {
  let read: Messages | undefined;
  return () => {
    read ??= readMessages(files);
    return read;
  };
}

/** Reads and merges the messages of some files. @throws Error when a file is malformed. */
function readMessages(files: readonly string[]): Messages {
  const all: Record<string, Message> = {};
  for (const file of files) {
    const read: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (!isMessages(read)) throw new Error(`${file} is no list of messages`);
    Object.assign(all, read);
  }
  return all;
}

function createLocale(tag: string, own: () => Messages, fallback: () => Messages): Locale {
  const direction = directionOf(tag);
  return {
    tag,
    direction,
    has: (key) => key in own() || key in fallback(),
    text: (key, values = {}) => {
      const translated = own()[key];
      const message = translated ?? fallback()[key];
      if (message === undefined) throw new Error(`no locale has the message ${key}`);
      const form = pluralForm(message, translated === undefined ? FALLBACK : tag, values);
      return fillIn(form, values, direction);
    },
  };
}

/** Returns the writing direction of a language's script, so that a new locale needs no further change. */
function directionOf(tag: string): 'ltr' | 'rtl' {
  const { script } = new Intl.Locale(tag).maximize();
  return ['Arab', 'Hebr', 'Thaa', 'Syrc', 'Nkoo', 'Adlm'].includes(script ?? '') ? 'rtl' : 'ltr';
}

function pluralForm(message: Message, tag: string, values: MessageValues): string {
  if (typeof message === 'string') return message;
  const category = new Intl.PluralRules(tag).select(Number(values.count));
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
  const available = enabled.filter((tag) => locales.has(tag));
  const tag = matchLanguage(languages, available) ?? available[0] ?? FALLBACK;
  const locale = locales.get(tag);
  if (locale === undefined) throw new Error('there are no locales');
  return locale;
}
