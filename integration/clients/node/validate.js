// node validate.js FILE checks an OpenAPI document and prints its version.
const SwaggerParser = require("@apidevtools/swagger-parser");

SwaggerParser.validate(process.argv[2]).then(
  (doc) => console.log(`valid ${doc.openapi}`),
  (err) => {
    console.error(err.message);
    process.exit(1);
  },
);
