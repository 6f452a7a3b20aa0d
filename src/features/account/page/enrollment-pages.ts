// Pages on which a user enrols a second factor at the account page. They are those of a login.
import type { Context } from 'koa';
import { shownClient } from '../../../capabilities/pages/views.ts';
import { AuthError } from '../../../http/errors.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { isAdministratorId } from '../../../records/users/administrators.ts';
import { isSameSecret } from '../../../runtime/secrets.ts';
import type { Authenticator } from '../../factors/authenticators.ts';
import type { FactorPage, FactorPagesDependencies } from '../../factors/factor.ts';
import { enrollmentPages } from '../../factors/page-routes.ts';
import { claimantOf } from '../actor.ts';
import { ACCOUNT } from './account-callbacks.ts';
import { goToLogin, reauthenticate } from './account-login.ts';
import { type AccountPageDependencies, back, refuseScripts, requirePage } from './account-page.ts';
import { type PageActor, pageActorOf, recordFactor, savePages } from './account-session.ts';

interface EnrollmentPagesDependencies extends AccountPageDependencies, FactorPagesDependencies {}

const SECTION = '/security';

/** Path on which a second factor is added. */
export const ADD_FACTOR = `${ACCOUNT}${SECTION}/add`;

export const addFactorRoutes: RouteDeclarations<EnrollmentPagesDependencies> = enrollmentPages(
  ADD_FACTOR,
  openPage,
  async (deps, ctx) => {
    // Otherwise the next enrolment would start with the state of this one.
    await savePages(deps, ctx, {});
    back(ctx, SECTION, 'methodAdded');
  },
);

async function openPage(deps: EnrollmentPagesDependencies, ctx: Context): Promise<FactorPage | undefined> {
  requirePage(deps);
  const actor = await pageActorOf(deps, ctx);
  // The script of the page that waits for a device polls this path. It answers with the state of the challenge
  // only.
  if (!ctx.path.endsWith('/status')) refuseScripts(ctx, actor);
  if (actor?.isFresh !== true) {
    if (actor === undefined) await goToLogin(deps, ctx, { to: SECTION });
    else await reauthenticate(deps, ctx, { to: SECTION, actor });
    return undefined;
  }
  requireOwnForm(ctx, actor);
  return pageOf(deps, ctx, actor);
}

/** Checks that an administrator's form carries the token of that administrator's own page. @throws AuthError 403 */
function requireOwnForm(ctx: Context, { user, formToken }: PageActor): void {
  if (ctx.method !== 'POST' || !isAdministratorId(user.id)) return;
  const { account } = ctx.query;
  if (typeof account === 'string' && isSameSecret(account, formToken)) return;
  throw new AuthError(403, 'invalid_request', 'This form is not from your own page.', {
    extra: { reason: 'form_expired' },
  });
}

function pageOf(deps: EnrollmentPagesDependencies, ctx: Context, actor: PageActor): FactorPage {
  const { client, pages: state, languages } = actor;
  const pathOf = (step?: string) => (step === undefined ? ADD_FACTOR : `${ADD_FACTOR}/${step}`);
  const postTo = (step?: string) =>
    isAdministratorId(actor.user.id) ? `${pathOf(step)}?account=${actor.formToken}` : pathOf(step);
  const urlOf = (step?: string) => (step?.endsWith('/resend') === true ? postTo(step) : pathOf(step));
  const claimant = claimantOf(actor, {
    ...(state.authenticatorId !== undefined && { authenticatorId: state.authenticatorId }),
    // Each form is judged by the page's own session, so that there is nothing to use up.
    spend: async () => true,
    onConfirmed: async ({ kind }: Authenticator) => {
      const { amr = [] } = deps.factors.find((factor) => factor.kind === kind) ?? {};
      await recordFactor(deps, ctx, amr);
    },
  });
  return {
    claimant,
    state,
    languages,
    uiLocales: undefined,
    mayEnroll: () => true,
    urlOf,
    model: (step) => ({
      action: postTo(step),
      csrf: deps.csrf.token(ctx),
      client: shownClient(client),
    }),
    render: (template, model, status = 200) => deps.views.page(ctx, template, model, { status }),
    saveState: (next) => savePages(deps, ctx, next),
    finish: async () => {
      await savePages(deps, ctx, {});
      back(ctx, SECTION, 'methodAdded');
    },
  };
}
