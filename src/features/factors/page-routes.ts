// Routes of the pages of the second factor: at a login (/u/<uid>/mfa), for a challenge of an action, and at an
// enrolment.
import type { Context } from 'koa';
import { PAGE, type RouteDeclarations } from '../../http/routes.ts';
import { CHALLENGE, type ChallengePagesDependencies, openChallengePage } from './challenge-pages.ts';
import { ENROLLMENT, openEnrollmentPage, showEnrolled } from './enrollment-ticket.ts';
import type { FactorPage, FactorPagesDependencies } from './factor.ts';
import { openMfaPage } from './mfa-page.ts';
import {
  answerStatus,
  choose,
  type Handler,
  postFactor,
  postResend,
  postSaved,
  showFactor,
  showFirst,
} from './pages.ts';

type PageOpener<D> = (deps: D, ctx: Context) => Promise<FactorPage | undefined>;

/** Returns a function that makes routes whose handlers get an opened page. A POST needs a valid CSRF token. */
const withPageFrom =
  <D extends FactorPagesDependencies>(open: PageOpener<D>) =>
  (handle: Handler) => ({
    ...PAGE,
    handle: async (deps: D, ctx: Context): Promise<void> => {
      const page = await open(deps, ctx);
      if (page === undefined) return;
      if (ctx.method === 'POST') deps.csrf.verify(ctx);
      await handle(deps, ctx, page);
    },
  });

/** Returns the routes under a path at which a second factor is given, or the first one enrolled. */
const pagesAt = <D extends FactorPagesDependencies>(
  path: string,
  withPage: ReturnType<typeof withPageFrom<D>>,
): RouteDeclarations<D> => ({
  [`GET ${path}` as `GET /${string}`]: withPage(showFirst),
  [`POST ${path}/recovery-code-saved` as `POST /${string}`]: withPage(postSaved),
  ...stepsAt(path, withPage),
});

/** Returns the routes of the steps after the first page. */
const stepsAt = <D extends FactorPagesDependencies>(
  path: string,
  withPage: ReturnType<typeof withPageFrom<D>>,
): RouteDeclarations<D> => ({
  [`GET ${path}/choose` as `GET /${string}`]: withPage(choose),
  [`GET ${path}/status` as `GET /${string}`]: withPage(answerStatus),
  [`GET ${path}/:factor` as `GET /${string}`]: withPage(showFactor),
  [`POST ${path}/:factor` as `POST /${string}`]: withPage(postFactor),
  [`POST ${path}/:factor/resend` as `POST /${string}`]: withPage(postResend),
});

/** The routes of the pages of the second factor. */
export const mfaPages: RouteDeclarations<ChallengePagesDependencies> = {
  ...pagesAt('/u/:uid/mfa', withPageFrom(openMfaPage)),
  ...pagesAt(CHALLENGE, withPageFrom(openChallengePage)),
  ...enrollmentPages(ENROLLMENT, openEnrollmentPage, showEnrolled),
};

/**
 * Returns the routes of pages on which a user enrols a second factor outside of a login.
 * @param path the path of the pages.
 * @param open opens a page; undefined when the browser was redirected.
 * @param showDone answers after the user has saved the recovery code of the first factor. It opens no page, because the
 *   ticket may be used by then.
 */
export function enrollmentPages<D extends FactorPagesDependencies>(
  path: string,
  open: (deps: D, ctx: Context) => Promise<FactorPage | undefined>,
  showDone: (deps: D, ctx: Context) => Promise<void>,
): RouteDeclarations<D> {
  const withPage = withPageFrom(open);
  return {
    // HEAD requests, and mail scanners that fetch links, must not begin an enrolment: GET only shows the choice.
    [`GET|HEAD ${path}` as `GET|HEAD /${string}`]: withPage(choose),
    [`POST ${path}/recovery-code-saved` as `POST /${string}`]: {
      ...PAGE,
      handle: async (deps, ctx) => {
        deps.csrf.verify(ctx);
        await showDone(deps, ctx);
      },
    },
    ...stepsAt(path, withPage),
  };
}
