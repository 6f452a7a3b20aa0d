// The pages that ask for an organization, when the application requires one and its request names none: the user
// types its name or an e-mail address before the login, or chooses one of their own after it.
import type { Context } from 'koa';
import type { Organizations } from '../../engine/organizations.ts';
import { formFields } from '../../http/body-fields.ts';
import { domainOf } from '../../records/email.ts';
import { type HostedDependencies, pageModel, type RequestPage, renderPage } from './request-page.ts';

interface OrganizationDependencies extends HostedDependencies {
  organizations: Pick<Organizations, 'choices'>;
}

type Show = (deps: OrganizationDependencies, ctx: Context, page: RequestPage) => Promise<void>;

/**
 * Asks for the name, or for an e-mail address with the domain of an organization, as the application's settings
 * say.
 */
export const showName: Show = (deps, ctx, page) =>
  renderNamePage(
    deps,
    ctx,
    page,
    methodsOf(page).includes('email') ? (page.pending.params.login_hint ?? '') : '',
  );

function methodsOf({ client }: RequestPage) {
  return client.organization_discovery_methods ?? ['organization_name'];
}

function renderNamePage(
  deps: OrganizationDependencies,
  ctx: Context,
  page: RequestPage,
  name: string,
  alert?: string,
): Promise<void> {
  const methods = methodsOf(page);
  const model = {
    ...pageModel(page, 'organization'),
    name,
    takesName: methods.includes('organization_name'),
    takesEmail: methods.includes('email'),
    ...(alert === undefined ? {} : { alert }),
  };
  return renderPage(deps, ctx, page, 'login/organization-name', model, alert === undefined ? 200 : 400);
}

/** The longest e-mail address (RFC 5321 §4.5.3.1); names of organizations are shorter. */
const MAX_NAME_LENGTH = 254;

/**
 * Accepts the typed name or e-mail address. Membership is checked only after the login, and an e-mail address is
 * matched by its domain, so the page does not reveal which accounts exist.
 */
export const acceptName: Show = async (deps, ctx, page) => {
  const typed = formFields(ctx, 'organization').organization.trim().slice(0, MAX_NAME_LENGTH);
  const methods = methodsOf(page);
  const domain = methods.includes('email') ? domainOf(typed) : undefined;
  if (domain !== undefined) {
    const found = await deps.config.organizationOfDomain(domain);
    return found === undefined
      ? renderNamePage(deps, ctx, page, typed, 'organization.unknownEmail')
      : deps.interactions.answer(ctx, { organization: found.id, login_hint: typed });
  }
  const found = methods.includes('organization_name') ? await deps.config.organization(typed) : undefined;
  if (found === undefined || found.name.toLowerCase() !== typed.toLowerCase()) {
    const alert = methods.includes('organization_name') ? 'unknown' : 'unknownEmail';
    return renderNamePage(deps, ctx, page, typed, `organization.${alert}`);
  }
  await deps.interactions.answer(ctx, { organization: found.id });
};

async function choicesOf(
  { organizations }: OrganizationDependencies,
  { pending: { userId, connection } }: RequestPage,
) {
  return userId === undefined ? [] : organizations.choices(userId, connection ?? '');
}

/** Lets the user choose. With a single organization the request continues at once. */
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

/** Accepts the choice, if it is one of the user's organizations. */
export const acceptChoice: Show = async (deps, ctx, page) => {
  const { organization } = formFields(ctx, 'organization');
  const isOwn = (await choicesOf(deps, page)).some(({ id }) => id === organization);
  return isOwn ? deps.interactions.answer(ctx, { organization }) : showChoice(deps, ctx, page);
};
