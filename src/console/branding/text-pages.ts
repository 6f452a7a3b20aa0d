// The texts of pages by prompt and language, with the default texts beside them.
import type { Context } from 'koa';
import { AuthError } from '../../http/errors.ts';
import { ask } from '../ask.ts';
import { type FormFault, faultIn } from '../form-fault.ts';
import { fieldsBelow, refusalOf, refusalOptions } from '../forms.ts';
import { back } from '../page.ts';
import { renderConsole } from '../render.ts';
import type { ConsoleSession } from '../session.ts';
import { type BrandingDependencies, languageOf, languagesOf, PATH } from './shared.ts';
import { defaultText, type KeptTexts, placesByPrompt, type TextPlace, withTexts } from './text-places.ts';

/** Shows the prompts in a language. */
export async function showPrompts(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const language = languageOf(deps, ctx.query.language);
  const prompts = await Promise.all(
    [...placesByPrompt()].map(async ([prompt, places]) => {
      const kept = await textsOf(deps, ctx, session, { prompt, language });
      return {
        name: prompt,
        path: `${PATH}/texts/${prompt}/${language}`,
        own: countOf(kept, places),
        of: places.length,
      };
    }),
  );
  await renderConsole(deps, ctx, session, {
    template: 'console/branding-prompts',
    title: 't:console.branding.tab.texts',
    model: { tab: 'texts', path: PATH, prompts, language, languages: languagesOf(deps) },
  });
}

/** Shows the texts of one prompt. */
export async function showTexts(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const at = placeAt(deps, ctx);
  await showForm(deps, ctx, session, { at, kept: await textsOf(deps, ctx, session, at) });
}

/** Saves the texts of the form. */
export async function saveTexts(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const at = placeAt(deps, ctx);
  const kept = await textsOf(deps, ctx, session, at);
  const typed = fieldsBelow(ctx, 'text.');
  const body = withTexts(kept, at.places, typed);
  const { prompt, language } = at;
  try {
    const params = { prompt, language };
    await ask(deps, ctx, session, 'PUT /prompts/:prompt/custom-text/:language', { params, body });
    back(ctx, `${PATH}/texts/${prompt}/${language}`, 'console.said.saved');
  } catch (thrown) {
    await showForm(deps, ctx, session, { at, kept: body, fault: refusalOf(thrown) });
  }
}

interface At {
  prompt: string;
  language: string;
  places: readonly TextPlace[];
}

/** Returns the prompt and language of the request's path. @throws AuthError 404 */
function placeAt(deps: BrandingDependencies, ctx: Context): At {
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
  { prompt, language }: Pick<At, 'prompt' | 'language'>,
): Promise<KeptTexts> {
  const params = { prompt, language };
  const { body } = await ask(deps, ctx, session, 'GET /prompts/:prompt/custom-text/:language', { params });
  return body as KeptTexts;
}

function countOf(kept: KeptTexts, places: readonly TextPlace[]): number {
  return places.filter(({ screen, key }) => textAt(kept, { screen, key }) !== '').length;
}

function textAt(kept: KeptTexts, { screen, key }: Pick<TextPlace, 'screen' | 'key'>): string {
  const text = Object.hasOwn(kept, screen) ? kept[screen]?.[key] : undefined;
  return typeof text === 'string' ? text : '';
}

async function showForm(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
  { at: { prompt, language, places }, kept, fault }: { at: At; kept: KeptTexts; fault?: FormFault },
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
        value: textAt(kept, one),
        fault: faultIn(fault, `${name}.${one.key}`),
      })),
  }));
  const faulty = screens.flatMap(({ texts }) => texts).find((one) => one.fault !== undefined);
  await renderConsole(deps, ctx, session, {
    template: 'console/branding-texts',
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
