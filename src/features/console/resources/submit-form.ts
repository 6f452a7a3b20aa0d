// Handles the form of an operation.
import type { Context } from 'koa';
import { AuthError } from '../../../http/errors.ts';
import { bodyOf } from '../../../http/server/body.ts';
import { jsonOf } from '../../../runtime/json.ts';
import { isObject } from '../../management/section.ts';
import { callApi } from '../api-calls.ts';
import { type ConsoleSession, redirectAfterForm } from '../console-page.ts';
import { declareConsolePage, renderConsole } from '../render.ts';
import { withSecrets } from './console-resource-secrets.ts';
import type { Place } from './declared.ts';
import { faultOfAnswer, faultsBySchema, hasFaults } from './faults.ts';
import {
  digestOf,
  isChange,
  type OperationForm,
  operationForm,
  type PlaceOperation,
  renderForm,
  renderReview,
} from './form-page.ts';
import {
  crumbsOf,
  type Link,
  type Places,
  paramsOf,
  paramsOfItem,
  type ResourcesDependencies,
  sectionOf,
  translated,
} from './model.ts';
import { nameOfCall, type Params, pageOf } from './operations.ts';
import { type ShownMember, shownMembers } from './shown.ts';
import { bodyOfForm, type FormBody, type Posted } from './values.ts';

interface Submission {
  body: unknown;
  posted: Posted;
  /** Whether the change was shown and confirmed. */
  isConfirmed: boolean;
}

/** Handles a form. Faults are shown at their fields, and a change is shown before it is made. */
export async function submitForm(
  deps: ResourcesDependencies,
  ctx: Context,
  session: ConsoleSession,
  target: PlaceOperation,
): Promise<void> {
  const posted = (bodyOf(ctx) ?? {}) as Posted;
  const form = await operationForm(deps, ctx, session, target, posted.as === 'json');
  const isConfirmed = isChange(target) && posted.step === 'save';
  const { text, tag } = deps.views.locale(ctx);
  const { body, faults } = isConfirmed ? confirmedBody(posted, form) : enteredBody(form, posted);
  const at = Object.fromEntries(Object.entries(faults).map(([path, key]) => [path, text(key)]));
  const formFaults = { at, general: [] as string[] };
  if (isConfirmed && posted.seen !== digestOf(form.record))
    formFaults.general.push(text('console.resources.fault.changed'));
  const { body: schema } = target.call;
  const [language] = tag.split('-');
  const found =
    hasFaults(formFaults) || schema === undefined
      ? formFaults
      : faultsBySchema(schema, body, form.fields, language);
  if (hasFaults(found))
    return renderForm(deps, ctx, session, form, {
      faults: found,
      posted: enteredValues(posted),
      status: 400,
    });
  if (isChange(target) && !isConfirmed) return renderReview(deps, ctx, session, form, body);
  await carryOut(deps, ctx, session, form, { body, posted, isConfirmed });
}

/** Returns the entered values. A confirmation has no form fields, so after it the form shows the stored values. */
const enteredValues = (posted: Posted): Posted | undefined => (posted.step === 'save' ? undefined : posted);

/** Returns the body that was shown for confirmation. It comes from the browser and is validated like any other. */
function confirmedBody(posted: Posted, { record }: OperationForm): FormBody {
  const body = typeof posted.body === 'string' ? jsonOf(posted.body) : undefined;
  return { body: withSecrets(body, record), faults: {} };
}

function enteredBody(form: OperationForm, posted: Posted): FormBody {
  const { fields, record, isJson } = form;
  if (!isChange(form)) return bodyOfForm(fields, posted);
  const before = isObject(record) ? record : {};
  const entered = bodyOfForm(fields, posted, isJson ? before : (record ?? {}));
  return isJson && isObject(entered.body)
    ? { ...entered, body: membersChanged(before, entered.body) }
    : entered;
}

/** Returns the changed members of a record that was edited as JSON; null for removed ones. */
function membersChanged(before: Record<string, unknown>, after: Record<string, unknown>): object {
  const removed = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  const others = Object.entries(after).filter(
    ([name, value]) => !Object.hasOwn(before, name) || JSON.stringify(before[name]) !== JSON.stringify(value),
  );
  return { ...Object.fromEntries(removed.map((name) => [name, null])), ...Object.fromEntries(others) };
}

async function carryOut(
  deps: ResourcesDependencies,
  ctx: Context,
  session: ConsoleSession,
  form: OperationForm,
  { body, posted, isConfirmed }: Submission,
): Promise<void> {
  const { call, place, places, operation, record, queryFields } = form;
  const params = paramsOf(ctx);
  const query = Object.fromEntries(
    queryFields.flatMap(({ path, name }) =>
      typeof posted[path] === 'string' && posted[path] !== '' ? [[name, posted[path]]] : [],
    ),
  );
  // PUT takes the whole record, so the unchanged members are added.
  const sentBody =
    operation === 'replace' && isObject(record) && isObject(body) ? { ...record, ...body } : body;
  let answer: unknown;
  try {
    const input = { params, query, ...(call.body && { body: sentBody }) };
    ({ body: answer } = await callApi(deps, ctx, session, nameOfCall(call), input));
  } catch (thrown) {
    if (!(thrown instanceof AuthError) || ![400, 409].includes(thrown.status)) throw thrown;
    const faults = faultOfAnswer(thrown, [...form.fields, ...queryFields]);
    const refused = { faults, posted: isConfirmed ? undefined : posted, status: thrown.status };
    return renderForm(deps, ctx, session, form, refused);
  }
  const childPlace = place.child === undefined ? undefined : places.get(place.child);
  const childParams =
    childPlace?.read && isObject(answer) ? paramsOfItem(answer, childPlace.path, params) : undefined;
  if (operation === 'create' && childPlace !== undefined && childParams !== undefined)
    return redirectAfterForm(ctx, pageOf(childPlace.path, childParams), 'console.said.created');
  if (isShownOnce(form) && isObject(answer)) return showAnswer(deps, ctx, session, form, answer);
  // A record that was ended has no page any more, so this leads to its list.
  const list = call.body === undefined ? crumbsOf(places, place.path, params).at(-2) : undefined;
  redirectAfterForm(
    ctx,
    operation === 'replace' && list ? list.href : placeAfter(form, params),
    'console.said.saved',
  );
}

/** Reports whether the answer of a creation cannot be seen later: a token, a ticket. */
export function isShownOnce({
  places,
  place,
  operation,
}: {
  places: Places;
  place: Place;
  operation: PlaceOperation['operation'];
}): boolean {
  if (operation !== 'create') return false;
  const { child, read } = place;
  return read === undefined || (child !== undefined && places.get(child)?.read === undefined);
}

/** Returns the page to show after an operation: that of the place, or else the nearest one above it. */
export function placeAfter({ places, place }: { places: Places; place: Place }, params: Params): string {
  if (place.read !== undefined) return pageOf(place.path, params);
  return crumbsOf(places, place.path, params).at(-1)?.href ?? '/console/resources';
}

interface ResourcesAnswerModel {
  heading: string;
  crumbs: Link[];
  members: ShownMember[];
  after: string;
}

export const RESOURCES_ANSWER_PAGE = declareConsolePage<ResourcesAnswerModel>('console/resources-answer');

async function showAnswer(
  deps: ResourcesDependencies,
  ctx: Context,
  session: ConsoleSession,
  { call, place, places }: OperationForm,
  answer: Record<string, unknown>,
): Promise<void> {
  const params = paramsOf(ctx);
  await renderConsole(deps, ctx, session, {
    page: RESOURCES_ANSWER_PAGE,
    section: sectionOf(place),
    title: translated(deps, ctx, 'doing', call.summary),
    model: {
      heading: call.summary,
      crumbs: crumbsOf(places, `${place.path}/:end`, params),
      members: shownMembers(answer, true),
      after: placeAfter({ places, place }, params),
    },
  });
}
