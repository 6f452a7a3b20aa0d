// node-fetch: the function itself, with its classes.
(module, load) => {
  const { fetch, Headers, Request, Response } = load('fetch');
  module.exports = Object.assign((...args) => fetch(...args), {
    default: fetch,
    Headers,
    Request,
    Response,
    FetchError: Error,
  });
};
