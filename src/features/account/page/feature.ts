// The account page, on which users manage their own account.
import { feature } from '../../../engine/feature.ts';
import { PAGE } from '../../../http/routes.ts';
import type { Limits } from '../../../records/limits.ts';
import { type ApplicationsDependencies, applicationsRoutes } from './applications-page.ts';
import { ACCOUNT } from './callbacks.ts';
import { confirmRoutes } from './confirm-page.ts';
import { type DataDependencies, dataRoutes } from './data-page.ts';
import { type EmailPageDependencies, emailRoutes } from './email-page.ts';
import { addFactorRoutes } from './enrollment-pages.ts';
import { type LinkPageDependencies, linkRoutes, showSecond } from './link-page.ts';
import { CONFIRM, finishLogin } from './login.ts';
import { requirePage } from './page.ts';
import { phoneRoutes } from './phone-page.ts';
import { profileRoutes } from './profile.ts';
import { type SecurityDependencies, securityRoutes } from './security.ts';
import { startAccountSession } from './session.ts';
import { type SessionsPageDependencies, sessionsRoutes } from './sessions-page.ts';

interface AccountFeatureDependencies
  extends ApplicationsDependencies,
    DataDependencies,
    EmailPageDependencies,
    LinkPageDependencies,
    SecurityDependencies,
    SessionsPageDependencies {}

const limits = {
  accountMail: {
    capacity: 5,
    perMinute: 1 / 10,
    per: 'user',
    where: 'codes that `/account` sends',
  },
} satisfies Limits;

const events = {
  account_changed: 'A user changed something at their account page; the description says what.',
  sce: 'A user changed their e-mail address and proved the new one.',
};

declare module '../../../records/limits.ts' {
  interface LimitNames extends Record<keyof typeof limits, Bucket> {}
}

declare module '../../../records/log-events.ts' {
  interface EventTypes extends Record<keyof typeof events, string> {}
}

export const accountPage = feature<AccountFeatureDependencies>({
  name: 'account-page',
  limits,
  events,
  routes: {
    ...profileRoutes,
    ...emailRoutes,
    ...phoneRoutes,
    ...securityRoutes,
    ...addFactorRoutes,
    ...sessionsRoutes,
    ...applicationsRoutes,
    ...linkRoutes,
    ...confirmRoutes,
    ...dataRoutes,
    [`GET ${ACCOUNT}/callback/:client` as const]: {
      ...PAGE,
      handle: async (deps, ctx) => {
        requirePage(deps);
        const finished = await finishLogin(deps, ctx);
        if (finished === undefined) return;
        const { session, to, link, isFresh } = finished;
        const isUnproved = isFresh && session.login.presence === 'unconfirmed';
        if (link !== undefined && !isUnproved) return showSecond(deps, ctx, link, session);
        await startAccountSession(deps, ctx, { ...session, link });
        ctx.redirect(isUnproved ? `${CONFIRM}?to=${to}` : `${ACCOUNT}${to}`);
      },
    },
  },
  pages: [
    'own/profile',
    'own/email',
    'own/security',
    'own/passkey',
    'own/sessions',
    'own/applications',
    'own/link',
    'own/confirm',
    'own/data',
  ],
});
