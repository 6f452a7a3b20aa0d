// What is wrong with the messages of a language, as far as a program can say it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PARTS } from '../../src/capabilities/pages/locales.ts';
import { baseTag, byCanonicalTag, canonicalTag } from '../../src/http/languages.ts';
import { FALLBACK, languagesIn } from '../../src/tenant/languages.ts';
import { filesIn, LOCALES, type Messages, messagesIn, messagesOf, type Parsed, parsed } from './messages.ts';

/** The folder whose messages a regional one has where it says nothing; undefined for English. */
export function baseOf(tag: string): string | undefined {
  const byTag = byCanonicalTag(languagesIn(LOCALES));
  const base = byTag.get(baseTag(canonicalTag(tag) ?? tag, byTag.keys()) ?? '');
  return base === FALLBACK ? undefined : base;
}

/** Returns the messages of a language with those of its bases. */
function withBase(tag: string, read: (tag: string) => Messages): Messages {
  const base = baseOf(tag);
  return { ...(base === undefined ? {} : withBase(base, read)), ...read(tag) };
}

/** What of a language its messages are compared with. */
interface Language {
  tag: string;
  /** Plural categories of whole numbers; some languages have others for fractions or millions. */
  needed: ReadonlySet<string>;
  known: readonly string[];
  script: string;
  /** The letters of its script; of all scripts where it is written in several. */
  letters: RegExp;
}

const SCRIPTS: Readonly<Record<string, string>> = {
  Jpan: '[\\p{scx=Hira}\\p{scx=Kana}\\p{scx=Han}]',
  Kore: '\\p{scx=Hang}',
  Hans: '\\p{scx=Han}',
  Hant: '\\p{scx=Han}',
};

function languageOf(tag: string): Language {
  const rules = new Intl.PluralRules([tag, FALLBACK]);
  const used = Array.from({ length: 200 }, (_, count) => rules.select(count));
  const { script = '' } = new Intl.Locale(tag).maximize();
  return {
    tag,
    needed: new Set([...used, 'other']),
    known: rules.resolvedOptions().pluralCategories,
    script,
    letters: new RegExp(SCRIPTS[script] ?? `\\p{scx=${script}}`, 'u'),
  };
}

/** Lists what is wrong, one line a fault. A language needs all messages beside its folders; those in its folders may be missing. */
export function faultsOf(tag: string): string[] {
  const language = languageOf(tag);
  const english = messagesOf(FALLBACK);
  const everybody = withBase(tag, messagesIn);
  const base = baseOf(tag);
  const inherited = base === undefined ? {} : withBase(base, messagesOf);
  const faults = Object.keys(messagesIn(FALLBACK))
    .filter((key) => !Object.hasOwn(everybody, key))
    .map((key) => `${key}: is missing; in English: ${english[key]}`);
  for (const folder of ['', ...PARTS]) {
    for (const [key, message] of Object.entries(messagesIn(tag, folder))) {
      const source = english[key];
      const say = (fault: string) => faults.push(`${key}: ${fault}: ${message}`);
      if (source === undefined) say('English has no such key');
      else if (folder !== folderOf(key)) say(`belongs into the folder ${join(tag, folderOf(key))}`);
      else if (inherited[key] === message) say(`says the same as ${base}, which it has anyway`);
      else for (const fault of faultsIn(message, source, { key, language, folder })) say(fault);
    }
  }
  return [...faults, ...repeatedKeys(tag), ...labelFaults(tag, { ...inherited, ...messagesOf(tag) })];
}

/** Texts that are read aloud in place of a text that is seen. */
const LABELS: Readonly<Record<string, string>> = {
  'copy.what': 'copy.button',
  'field.password.hide.label': 'field.password.hide',
  'field.password.show.label': 'field.password.show',
  'identifier.change.label': 'identifier.change',
  'own.applications.withdrawOf': 'own.applications.withdraw',
  'own.connected.removeOf': 'own.connected.remove',
  'own.identities.unlinkOf': 'own.identities.unlink',
  'own.method.removeOf': 'own.method.remove',
  'console.security.unblock.name': 'console.security.unblock',
};

/** Checks that who says what a button shows reaches it, also where another text is read aloud (WCAG 2.2 §2.5.3). */
function labelFaults(tag: string, messages: Messages): string[] {
  return Object.entries(LABELS).flatMap(([label, shown]) => {
    const [said, seen] = [messages[label], messages[shown]].map(
      (one) => one && ` ${wordsOf(one, tag).join(' ')} `,
    );
    if (said === undefined || seen === undefined || said.includes(seen)) return [];
    return [`${label}: does not contain what is seen, “${messages[shown]}”: ${messages[label]}`];
  });
}

function wordsOf(text: string, tag: string): string[] {
  const plain = text.toLowerCase().replaceAll('\u00AD', '').replaceAll('’', ' ');
  return [...new Intl.Segmenter(tag, { granularity: 'word' }).segment(plain)]
    .filter(({ isWordLike }) => isWordLike === true)
    .map(({ segment }) => segment);
}

const folderOf = (key: string): string => PARTS.find((part) => key.startsWith(`${part}.`)) ?? '';

/** Names the keys that a language has more than once, of which only the last would count. */
function repeatedKeys(tag: string): string[] {
  const keys = ['', ...PARTS]
    .flatMap((folder) => filesIn(tag, folder))
    .flatMap((file) =>
      [...readFileSync(file, 'utf8').matchAll(/^\s*"([^"]+)":/gm)].map(([, key = '']) => key),
    );
  const repeated = keys.filter((key, at) => keys.indexOf(key) < at);
  return repeated.map((key) => `${key}: is there more than once`);
}

/** Where a message is. */
interface Place {
  key: string;
  language: Language;
  /** Of the language; empty for the language's own. */
  folder: string;
}

/** Says what is wrong with a message. @param source the English one. */
function faultsIn(message: string, source: string, place: Place): string[] {
  const { language, folder } = place;
  const wanted = parsed(source);
  let given: Parsed;
  try {
    given = parsed(message);
  } catch (thrown) {
    return [`is no ICU message (${(thrown as Error).message})`];
  }
  return [
    ...valueFaults(given, wanted, language),
    ...(language.tag === FALLBACK ? [] : translationFaults(given, wanted, place)),
    ...(folder === '' ? [...TYPOGRAPHY, ...OF_PAGES] : TYPOGRAPHY).flatMap(([wrong, why]) =>
      wrong.test(message) ? [why] : [],
    ),
  ];
}

/** Checks the values and the forms of plurals. */
function valueFaults(given: Parsed, wanted: Parsed, { needed, known }: Language): string[] {
  const faults: string[] = [];
  const all = new Set(wanted.forms.flatMap(({ values }) => [...values]));
  const numbers = new Set(wanted.choices.map(({ by }) => by));
  for (const { values } of given.forms) {
    for (const value of values) if (!all.has(value)) faults.push(`English has no {${value}}`);
    for (const value of all) if (!values.has(value) && !numbers.has(value)) faults.push(`lacks {${value}}`);
  }
  for (const { by, categories } of given.choices) {
    if (!numbers.has(by)) faults.push(`English has no choice by ${by}`);
    const missing = [...needed].filter((one) => !categories.includes(one));
    if (missing.length > 0) faults.push(`lacks the plural form ${missing.join(', ')} of ${by}`);
    const unknown = categories.filter(
      (one) => !known.includes(one as Intl.LDMLPluralRule) && !/^=\d+$/.test(one),
    );
    if (unknown.length > 0)
      faults.push(`has the plural form ${unknown.join(', ')}, which the language has not`);
  }
  // A language with one form may have the number alone.
  for (const by of numbers)
    if (needed.size > 1 && !given.choices.some((choice) => choice.by === by))
      faults.push(`lacks the plural of ${by}`);
  return [...new Set(faults)];
}

/** Punctuation at the end of a text, by the English one: what other scripts have in its place. */
const ENDS: Readonly<Record<string, RegExp>> = {
  '.': /[.。．।۔։।]["”“»«』」)]?$/u,
  '?': /[?？؟;՞]/u,
  ':': /[:：՝]$/u,
};
/** Scripts that end no sentence with a mark. */
const WITHOUT_ENDS = new Set(['Thai', 'Laoo']);

const END_MARK = /[.。।۔։:：?？؟]$/u;

/** Buttons, links and labels: a translation may be longer than English, but not without bounds. */
const SHORT =
  /\.(?:submit|accept|deny|decline|continue|cancel|save|add|remove|button|change|rename|end|back|later|allow|none|show|hide|scan)$/;

function translationFaults(given: Parsed, wanted: Parsed, { key, language, folder }: Place): string[] {
  const [source = ''] = wanted.forms.map(({ text }) => text);
  const { script } = language;
  const faults = given.forms.flatMap(({ text }) => {
    const end = source.at(-1) ?? '';
    const ends = WITHOUT_ENDS.has(script) || ENDS[end] === undefined || ENDS[end].test(text);
    const isOpen = !/\p{L}$/u.test(source) || !END_MARK.test(text) || WITHOUT_ENDS.has(script);
    return [
      ...(ends ? [] : [`does not end as English does (${end})`]),
      ...(isOpen ? [] : ['ends with a mark, which English does not']),
      ...(SHORT.test(key) && text.length > Math.max(30, source.length * 2.5)
        ? ['is too long for a button']
        : []),
      ...(text === source && /\p{L}+ \p{L}+ \p{L}+/u.test(text) ? ['is still English'] : []),
      ...(folder === '' && isOfOtherScript(text, source, language)
        ? [`has no letter of the script ${script}`]
        : []),
    ];
  });
  return [...new Set(faults)];
}

/** Reports whether a text of words has no letter of its language's script. */
function isOfOtherScript(text: string, source: string, { script, letters }: Language): boolean {
  const words = (one: string) => one.replaceAll(/\{\w*\}|[A-Z]{2,}|[\w.]+@[\w.]+|https?:\S*/g, '');
  return script !== 'Latn' && /\p{L}{3}/u.test(words(source)) && !letters.test(words(text));
}

/** What no message contains, in any language. */
const TYPOGRAPHY: readonly [RegExp, string][] = [
  [/<|&\w+;|&#/, 'contains HTML; texts are shown as they are'],
  [/(?<!\})'(?!\{)/, 'contains a straight apostrophe, which quotes in ICU messages; write ’'],
  [/\.\.\./, 'contains three dots; write …'],
  [/^\s|\s$|\s{2}|[\t\n]/, 'begins or ends with a space, or contains two, or a line break'],
  [/ [?!;:»](?:\s|$)/, 'contains a space before a mark that a line could break at; write U+202F or U+00A0'],
];

/** What is in no message of a page for everybody. */
const OF_PAGES: typeof TYPOGRAPHY = [
  [/\p{L}"|"\p{L}/u, 'contains straight quotation marks; write those of the language'],
  [/[\u202A-\u202E\uFEFF]/, 'contains an invisible character that overrides directions'],
];
