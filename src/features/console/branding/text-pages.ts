// The texts of pages by prompt and language, with the default texts beside them.
import type { Context } from 'koa';
import { SCREENS } from '../../../capabilities/pages/custom-texts.ts';
import type { Locale } from '../../../capabilities/pages/locales.ts';
import { AuthError } from '../../../http/errors.ts';
import { callApi } from '../api-calls.ts';
import { redirectAfterForm } from '../console-page.ts';
import type { ConsoleSession } from '../console-session.ts';
import { type FormFault, faultIn } from '../form-fault.ts';
import { fieldsBelow, refusalOf, refusalOptions, withoutReturns } from '../forms.ts';
import { declareConsolePage, renderConsole } from '../render.ts';
import { type BrandingDependencies, languageOf, languagesOf, PATH, type ShownLanguage } from './shared.ts';

interface BrandingPromptsModel {
  tab: string;
  path: string;
  prompts: { name: string; path: string; own: number; of: number }[];
  language: string;
  languages: ShownLanguage[];
}

export const BRANDING_PROMPTS_PAGE = declareConsolePage<BrandingPromptsModel>('console/branding-prompts');

export async function showPrompts(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const language = languageOf(deps, ctx.query.language);
  const prompts = await Promise.all(
    [...placesByPrompt()].map(async ([prompt, places]) => {
      const stored = await textsOf(deps, ctx, session, { prompt, language });
      return {
        name: prompt,
        path: `${PATH}/texts/${prompt}/${language}`,
        own: countReplaced(stored, places),
        of: places.length,
      };
    }),
  );
  await renderConsole(deps, ctx, session, {
    page: BRANDING_PROMPTS_PAGE,
    title: 't:console.branding.tab.texts',
    model: { tab: 'texts', path: PATH, prompts, language, languages: languagesOf(deps) },
  });
}

export async function showTexts(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const selection = selectionAt(deps, ctx);
  await showForm(deps, ctx, session, { selection, stored: await textsOf(deps, ctx, session, selection) });
}

export async function saveTexts(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const selection = selectionAt(deps, ctx);
  const stored = await textsOf(deps, ctx, session, selection);
  const entered = fieldsBelow(ctx, 'text.');
  const body = withTexts(stored, selection.places, entered);
  const { prompt, language } = selection;
  try {
    const params = { prompt, language };
    await callApi(deps, ctx, session, 'PUT /prompts/:prompt/custom-text/:language', { params, body });
    redirectAfterForm(ctx, `${PATH}/texts/${prompt}/${language}`, 'console.said.saved');
  } catch (thrown) {
    await showForm(deps, ctx, session, { selection, stored: body, fault: refusalOf(thrown) });
  }
}

interface TextSelection {
  prompt: string;
  language: string;
  places: readonly TextPlace[];
}

/** Returns the prompt and language of the request's path. @throws AuthError 404 */
function selectionAt(deps: BrandingDependencies, ctx: Context): TextSelection {
  const prompt = String(ctx.params.prompt);
  const places = placesByPrompt().get(prompt);
  const language = String(ctx.params.language);
  if (places === undefined || languageOf(deps, language) !== language)
    throw new AuthError(404, 'not_found', 'Not Found');
  return { prompt, language, places };
}

async function textsOf(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
  { prompt, language }: Pick<TextSelection, 'prompt' | 'language'>,
): Promise<StoredTexts> {
  const params = { prompt, language };
  const { body } = await callApi(deps, ctx, session, 'GET /prompts/:prompt/custom-text/:language', {
    params,
  });
  return body as StoredTexts;
}

function countReplaced(stored: StoredTexts, places: readonly TextPlace[]): number {
  return places.filter(({ screen, key }) => textAt(stored, { screen, key }) !== '').length;
}

function textAt(stored: StoredTexts, { screen, key }: Pick<TextPlace, 'screen' | 'key'>): string {
  const text = Object.hasOwn(stored, screen) ? stored[screen]?.[key] : undefined;
  return typeof text === 'string' ? text : '';
}

interface BrandingTextsModel {
  tab: string;
  path: string;
  prompt: string;
  language: string;
  direction: 'ltr' | 'rtl';
  action: string;
  languages: (ShownLanguage & { path: string })[];
  mayChange: boolean;
  screens: {
    name: string;
    texts: {
      id: string;
      key: string;
      field: string;
      usual: string;
      value: string;
      fault: FormFault | undefined;
    }[];
  }[];
}

export const BRANDING_TEXTS_PAGE = declareConsolePage<BrandingTextsModel>('console/branding-texts');

async function showForm(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
  {
    selection: { prompt, language, places },
    stored,
    fault,
  }: { selection: TextSelection; stored: StoredTexts; fault?: FormFault },
): Promise<void> {
  const locale = deps.views.locales.get(language) ?? deps.views.locale(ctx);
  const names = [...new Set(places.map(({ screen }) => screen))];
  const screens = names.map((name, n) => ({
    name,
    texts: places
      .filter(({ screen }) => screen === name)
      .map((one, m) => ({
        id: `text-${n + 1}-${m + 1}`,
        key: one.key,
        field: `${name}.${one.key}`,
        usual: defaultText(locale, one.message),
        value: textAt(stored, one),
        fault: faultIn(fault, `${name}.${one.key}`),
      })),
  }));
  const faulty = screens.flatMap(({ texts }) => texts).find((one) => one.fault !== undefined);
  await renderConsole(deps, ctx, session, {
    page: BRANDING_TEXTS_PAGE,
    title: 't:console.branding.tab.texts',
    ...refusalOptions(fault, faulty && { id: faulty.id, label: { text: faulty.key } }),
    model: {
      tab: 'texts',
      path: PATH,
      prompt,
      language,
      direction: locale.direction,
      action: `${PATH}/texts/${prompt}/${language}`,
      languages: languagesOf(deps).map((one) => ({ ...one, path: `${PATH}/texts/${prompt}/${one.tag}` })),
      mayChange: session.can('update:prompts'),
      screens,
    },
  });
}

// The texts of pages that a tenant can replace, by prompt, screen and key.

interface TextPlace {
  screen: string;
  key: string;
  /** Our message that it replaces; the first one where it replaces several. */
  message: string;
}

/** Returns the texts by prompt, in the order of the pages. */
function placesByPrompt(): ReadonlyMap<string, TextPlace[]> {
  const all = new Map<string, TextPlace[]>();
  for (const texts of Object.values(SCREENS)) {
    for (const [message, place] of Object.entries(texts)) {
      const [prompt = '', screen = '', key = ''] = place.split('/');
      const places = all.get(prompt) ?? [];
      if (!places.some((one) => one.screen === screen && one.key === key))
        places.push({ screen, key, message });
      all.set(prompt, places);
    }
  }
  return all;
}

/** The placeholders in tenants' texts, by the names of our values. */
const VALUES: Readonly<Record<string, string>> = {
  client: 'clientName',
  tenant: 'companyName',
  connection: 'connectionName',
  email: 'email',
  address: 'email',
  user: 'userName',
};

/** Returns our text with placeholders as tenants' texts write them. */
function defaultText(locale: Locale, message: string): string {
  const values = Object.fromEntries(Object.entries(VALUES).map(([ours, theirs]) => [ours, `\${${theirs}}`]));
  return locale.text(message, values).replaceAll(/[\u2068\u2069]/g, '');
}

/** The tenant's texts of a prompt, by screen and key. */
type StoredTexts = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/**
 * Returns the stored texts with the entered ones; an empty text restores the default. Screens and keys that the form
 * does not have are kept.
 */
function withTexts(
  before: StoredTexts,
  places: readonly TextPlace[],
  entered: Readonly<Record<string, string>>,
): StoredTexts {
  const after = structuredClone(before) as Record<string, Record<string, unknown>>;
  for (const { screen, key } of places) {
    const text = entered[`${screen}.${key}`];
    if (text === undefined) continue;
    const { [key]: _before, ...others } = after[screen] ?? {};
    after[screen] = text.trim() === '' ? others : { ...others, [key]: withoutReturns(text) };
  }
  return Object.fromEntries(Object.entries(after).filter(([, texts]) => Object.keys(texts).length > 0));
}
