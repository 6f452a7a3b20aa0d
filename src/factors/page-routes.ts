// Where the hosted pages of the second factor are: at a login (/u/<uid>/mfa), for what an action wants one for, at an enrolment.
import type { Context } from 'koa';
import { PAGE, type RouteDeclarations } from '../http/routes.ts';
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

type Open<D> = (deps: D, ctx: Context) => Promise<FactorPage | undefined>;

/** Opens a page, of a login or of an enrolment, before it is made. */
const openedBy =
  <D extends FactorPagesDependencies>(open: Open<D>) =>
  (handle: Handler) => ({
    ...PAGE,
    handle: async (deps: D, ctx: Context): Promise<void> => {
      const page = await open(deps, ctx);
      if (page === undefined) return;
      if (ctx.method === 'POST') deps.csrf.verify(ctx);
      await handle(deps, ctx, page);
    },
  });

/** The pages at an address on which a second factor is given, or the first enrolled. */
const pagesAt = <D extends FactorPagesDependencies>(
  path: string,
  opened: ReturnType<typeof openedBy<D>>,
): RouteDeclarations<D> => ({
  [`GET ${path}` as `GET /${string}`]: opened(showFirst),
  [`POST ${path}/recovery-code-saved` as `POST /${string}`]: opened(postSaved),
  ...stepsAt(path, opened),
});

/** The steps that follow. */
const stepsAt = <D extends FactorPagesDependencies>(
  path: string,
  opened: ReturnType<typeof openedBy<D>>,
): RouteDeclarations<D> => ({
  [`GET ${path}/choose` as `GET /${string}`]: opened(choose),
  [`GET ${path}/status` as `GET /${string}`]: opened(answerStatus),
  [`GET ${path}/:factor` as `GET /${string}`]: opened(showFactor),
  [`POST ${path}/:factor` as `POST /${string}`]: opened(postFactor),
  [`POST ${path}/:factor/resend` as `POST /${string}`]: opened(postResend),
});

/** The routes of the second factor's pages. */
export const mfaPages: RouteDeclarations<ChallengePagesDependencies> = {
  ...pagesAt('/u/:uid/mfa', openedBy(openMfaPage)),
  ...pagesAt(CHALLENGE, openedBy(openChallengePage)),
  ...enrollmentPages(ENROLLMENT, openEnrollmentPage, showEnrolled),
};

/**
 * The pages on which a user enrols a second factor who is not about to log in.
 * @param path where they are. @param open opens one; undefined when the browser was sent elsewhere. @param done answers when
 *   the recovery code was seen that comes with the first: what opened the pages may be used up by then.
 */
export function enrollmentPages<D extends FactorPagesDependencies>(
  path: string,
  open: (deps: D, ctx: Context) => Promise<FactorPage | undefined>,
  done: (deps: D, ctx: Context) => Promise<void>,
): RouteDeclarations<D> {
  const enrolling = openedBy(open);
  return {
    // What fetches links in mails begins nothing here.
    [`GET|HEAD ${path}` as `GET|HEAD /${string}`]: enrolling(choose),
    [`POST ${path}/recovery-code-saved` as `POST /${string}`]: {
      ...PAGE,
      handle: async (deps, ctx) => {
        deps.csrf.verify(ctx);
        await done(deps, ctx);
      },
    },
    ...stepsAt(path, enrolling),
  };
}
