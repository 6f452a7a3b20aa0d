// The tenant's own page around ours.
import type { Context } from 'koa';
import { bodyTexts } from '../../http/body-fields.ts';
import { ask, askIfThere } from '../ask.ts';
import { refusalOf, withoutReturns } from '../forms.ts';
import { back } from '../page.ts';
import { renderConsole, type Words } from '../render.ts';
import type { AtConsole } from '../session.ts';
import { type BrandingDependencies, PATH } from './shared.ts';

const CALL = '/branding/templates/universal-login';

/** What a new one begins with: our page alone. */
const EMPTY = `<!DOCTYPE html>
<html lang="{{ locale }}">
  <head>
    {%- auth0:head -%}
  </head>
  <body>
    {%- auth0:widget -%}
  </body>
</html>
`;

/** Shows it. */
export async function showTemplate(deps: BrandingDependencies, ctx: Context, here: AtConsole): Promise<void> {
  await showForm(deps, ctx, here, {});
}

/** Keeps it, or removes it. */
export async function saveTemplate(deps: BrandingDependencies, ctx: Context, here: AtConsole): Promise<void> {
  const { source = '', order } = bodyTexts(ctx);
  if (order === 'remove') {
    await ask(deps, ctx, here, `DELETE ${CALL}`);
    return back(ctx, `${PATH}/template`, 'console.said.deleted');
  }
  try {
    const body = { template: withoutReturns(source) };
    await ask(deps, ctx, here, `PUT ${CALL}`, { body });
    back(ctx, `${PATH}/template`, 'console.said.saved');
  } catch (thrown) {
    await showForm(deps, ctx, here, { source, alert: refusalOf(thrown) });
  }
}

async function showForm(
  deps: BrandingDependencies,
  ctx: Context,
  here: AtConsole,
  { source, alert }: { source?: string; alert?: Words },
): Promise<void> {
  const kept = await templateNow(deps, ctx, here);
  await renderConsole(deps, ctx, here, {
    template: 'console/branding-template',
    title: 't:console.branding.tab.template',
    alert,
    status: alert === undefined ? 200 : 400,
    model: {
      tab: 'template',
      path: PATH,
      source: source ?? kept ?? EMPTY,
      isKept: kept !== undefined,
      mayChange: here.can('update:branding'),
      mayDelete: here.can('delete:branding'),
    },
  });
}

async function templateNow(
  deps: BrandingDependencies,
  ctx: Context,
  here: AtConsole,
): Promise<string | undefined> {
  const answer = await askIfThere(deps, ctx, here, `GET ${CALL}`);
  return (answer?.body as { body: string } | undefined)?.body;
}
