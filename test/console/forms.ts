// Helpers that fill in the console's forms and send what a browser would.
import { expect } from 'chai';
import type { Answer } from '../support/agent.ts';
import type { ConsoleAgent } from '../support/console.ts';

const unescaped = (html: string): string =>
  html
    .replaceAll('&quot;', '"')
    .replaceAll('&#34;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');

const attribute = (tag: string, name: string): string | undefined => {
  const found = new RegExp(`\\b${name}="([^"]*)"`).exec(tag)?.[1];
  return found === undefined ? undefined : unescaped(found);
};

/** Returns the fields of the form that posts to an address, as a browser would send them, without the token. */
export function fieldsOf(page: Answer, action: string): [string, string][] {
  const forms = [...page.text.matchAll(/<form([^>]*)>([\s\S]*?)<\/form>/g)];
  const inside = forms.find(([, tag = '']) => attribute(tag, 'action') === action)?.[2];
  if (inside === undefined) throw new Error(`no form posts to ${action} on the page:\n${page.text}`);
  const fields: [string, string][] = [];
  const controls =
    /<input[^>]*>|<select([^>]*)>([\s\S]*?)<\/select>|<textarea([^>]*)>([\s\S]*?)<\/textarea>/g;
  for (const [tag, select, options = '', textarea, text = ''] of inside.matchAll(controls)) {
    const name = attribute(select ?? textarea ?? tag, 'name') ?? '';
    if (select !== undefined) {
      const all = [...options.matchAll(/<option([^>]*)>/g)].map(([, option = '']) => option);
      const chosen = all.find((option) => option.includes(' selected')) ?? all[0];
      if (chosen !== undefined) fields.push([name, attribute(chosen, 'value') ?? '']);
    } else if (textarea !== undefined) fields.push([name, unescaped(text.replace(/^\n/, ''))]);
    else if (!['checkbox', 'radio'].includes(attribute(tag, 'type') ?? '') || tag.includes(' checked'))
      fields.push([name, attribute(tag, 'value') ?? '']);
  }
  return fields.filter(([name]) => name !== '' && name !== '_csrf');
}

/** Sends a form of a page. @param typed the values that replace those of the page. */
export function sendForm(
  who: ConsoleAgent,
  page: Answer,
  action: string,
  typed: Record<string, string | string[]> = {},
): Promise<Answer> {
  const others = fieldsOf(page, action).filter(([name]) => !Object.hasOwn(typed, name));
  const own = Object.entries(typed).flatMap(([name, value]) =>
    [value].flat().map((one): [string, string] => [name, one]),
  );
  return who.post(action, [...others, ...own]);
}

/**
 * Expects that a refused form shows a fault at its field, and links to the field from an alert that has the focus.
 */
export function expectFaultAt({ text }: Answer, id: string, said: string): void {
  const tag = new RegExp(`<(?:input|select|textarea)[^>]*\\bid="${id}"[^>]*>`).exec(text)?.[0] ?? '';
  expect(tag, id).to.contain('aria-invalid="true"');
  expect(attribute(tag, 'aria-describedby')?.split(' '), id).to.include(`${id}-fault`);
  const fault = new RegExp(`id="${id}-fault">([\\s\\S]*?)</p>`).exec(text)?.[1] ?? '';
  expect(unescaped(fault.replaceAll(/<[^>]*>/g, ''))).to.contain(said);
  expect(text)
    .to.match(/role="alert" id="alert" tabindex="-1" autofocus/)
    .and.to.contain(`href="#${id}"`);
}
