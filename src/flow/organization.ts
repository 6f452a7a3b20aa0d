// The organization that a login is for, where the application needs one and its request names none: the user types its
// name before the login, or chooses among their own after it.
import type { Context } from 'koa';
import type { Organizations } from '../engine/organizations.ts';
import { formFields } from '../http/body-fields.ts';
import { type HostedDependencies, pageModel, type RequestPage, renderPage } from './request-page.ts';

interface OrganizationDependencies extends HostedDependencies {
  organizations: Pick<Organizations, 'choices'>;
}

type Show = (deps: OrganizationDependencies, ctx: Context, page: RequestPage) => Promise<void>;

/** Asks for the name. */
export const showName: Show = (deps, ctx, page) => askName(deps, ctx, page, '');

function askName(
  deps: OrganizationDependencies,
  ctx: Context,
  page: RequestPage,
  name: string,
  alert?: string,
): Promise<void> {
  const model = { ...pageModel(page, 'organization'), name, ...(alert === undefined ? {} : { alert }) };
  return renderPage(deps, ctx, page, 'login/organization-name', model, alert === undefined ? 200 : 400);
}

/** Takes the name: whether the user is a member is looked at when they have logged in. */
export const takeName: Show = async (deps, ctx, page) => {
  const { organization: typed } = formFields(ctx, 'organization');
  const name = typed.trim().toLowerCase();
  const found = await deps.config.organization(name);
  if (found === undefined || found.name !== name)
    return askName(deps, ctx, page, typed, 'organization.unknown');
  await deps.interactions.answer(ctx, { organization: found.id });
};

async function choicesOf(
  { organizations }: OrganizationDependencies,
  { pending: { userId, connection } }: RequestPage,
) {
  return userId === undefined ? [] : organizations.choices(userId, connection ?? '');
}

/** Lets the user choose; who is a member of one alone goes on with it. */
export const showChoice: Show = async (deps, ctx, page) => {
  const choices = await choicesOf(deps, page);
  const [first] = choices;
  if (first === undefined) {
    return deps.interactions.answer(ctx, {
      error: 'access_denied',
      description: 'client requires organization membership, but user does not belong to any organization',
    });
  }
  if (choices.length === 1) return deps.interactions.answer(ctx, { organization: first.id });
  const organizations = choices.map(({ id, name, display_name }) => ({ id, name: display_name ?? name }));
  await renderPage(deps, ctx, page, 'login/organization', {
    ...pageModel(page, 'organization'),
    organizations,
  });
};

/** Takes the choice, if it is among the user's own. */
export const takeChoice: Show = async (deps, ctx, page) => {
  const { organization } = formFields(ctx, 'organization');
  const isOwn = (await choicesOf(deps, page)).some(({ id }) => id === organization);
  return isOwn ? deps.interactions.answer(ctx, { organization }) : showChoice(deps, ctx, page);
};
