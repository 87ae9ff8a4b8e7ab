/* Codes of the graph engine: the C interface of npumesh adds none. */
#ifndef NPUMESH_ACL_ERROR_CODES_GE_ERROR_CODES_H_
#define NPUMESH_ACL_ERROR_CODES_GE_ERROR_CODES_H_

#endif /* NPUMESH_ACL_ERROR_CODES_GE_ERROR_CODES_H_ */
