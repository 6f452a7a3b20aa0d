// Reads the messages of a language as translators write them, with what each says in every form.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { IntlMessageFormat } from 'intl-messageformat';
import { PARTS } from '../../src/capabilities/pages/locales.ts';

export const LOCALES = fileURLToPath(new URL('../../views/locales', import.meta.url));

export type Messages = Readonly<Record<string, string>>;

/** Lists the files of messages in a folder, without those in folders in it. */
export function filesIn(...path: string[]): string[] {
  const folder = join(LOCALES, ...path);
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names.filter((one) => one.endsWith('.json')).map((one) => join(folder, one));
}

/** Returns the messages in a folder, without those in folders in it. */
export const messagesIn = (...path: string[]): Messages =>
  Object.assign({}, ...filesIn(...path).map((one) => JSON.parse(readFileSync(one, 'utf8'))));

/** Returns all messages of a language. */
export const messagesOf = (tag: string): Messages =>
  Object.assign({}, messagesIn(tag), ...PARTS.map((part) => messagesIn(tag, part)));

/** What a message says in one form. */
export interface Form {
  /** With `{name}` for each value, and `{}` for the number that chose the form. */
  text: string;
  values: ReadonlySet<string>;
}

/** A choice of a message by a number. */
export interface Choice {
  by: string;
  categories: readonly string[];
}

export interface Parsed {
  forms: readonly Form[];
  choices: readonly Choice[];
}

type Elements = ReturnType<IntlMessageFormat['getAst']>;

/** The types of elements, as the parser numbers them. */
const [LITERAL, ARGUMENT, NUMBER, SELECT, PLURAL, POUND] = [0, 1, 2, 5, 6, 7];

/** @throws Error for a message that is malformed or uses what our messages do not. */
export function parsed(message: string): Parsed {
  const choices: Choice[] = [];
  const read = (elements: Elements): Form[] =>
    elements.reduce<Form[]>(
      (all, element) =>
        all.flatMap((before) =>
          readElement(element).map((one) => ({
            text: before.text + one.text,
            values: new Set([...before.values, ...one.values]),
          })),
        ),
      [{ text: '', values: new Set() }],
    );
  const readElement = (element: Elements[number]): Form[] => {
    const type: number = element.type;
    if (type === POUND) return [{ text: '{}', values: new Set() }];
    if (!('value' in element) || typeof element.value !== 'string') throw new Error('an unknown element');
    const { value } = element;
    if (type === LITERAL) return [{ text: value, values: new Set() }];
    if (type === ARGUMENT || type === NUMBER) return [{ text: `{${value}}`, values: new Set([value]) }];
    if ((type !== PLURAL && type !== SELECT) || !('options' in element))
      throw new Error('only {name}, {name, number}, plural and select are used');
    if (type === PLURAL) choices.push({ by: value, categories: Object.keys(element.options) });
    return Object.values(element.options).flatMap((option) =>
      read(option.value).map((form) => ({ text: form.text, values: new Set([...form.values, value]) })),
    );
  };
  const forms = read(new IntlMessageFormat(message, 'en', undefined, { ignoreTag: true }).getAst());
  return { forms, choices };
}
